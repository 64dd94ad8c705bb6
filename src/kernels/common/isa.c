#include "common/isa.h"

#include <stdio.h>
#include <string.h>
#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

const char *const isa_choices[] = {"auto", "scalar", "sse2", "avx2", "avx512", "neon", NULL};

const char *isa_name(enum isa isa) {
    return isa < ISA_COUNT ? isa_choices[isa + 1] : "auto";
}

enum isa isa_from_name(const char *name) {
    for (int isa = 0; isa < ISA_COUNT; isa++) {
        if (strcmp(name, isa_choices[isa + 1]) == 0) {
            return (enum isa)isa;
        }
    }
    return ISA_COUNT;
}

#if defined(__x86_64__)
static bool cpu_runs(enum isa isa) {
    __builtin_cpu_init();
    switch (isa) {
    case ISA_SCALAR:
        return true;
    case ISA_SSE2:
        return __builtin_cpu_supports("sse2");
    case ISA_AVX2:
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case ISA_AVX512:
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    default:
        return false;
    }
}

/* AVX-VNNI (CPUID leaf 7.1 EAX bit 4) has no name in clang 14's __builtin_cpu_supports; AVX2's
 * answer covers XCR0. */
static bool has_avxvnni(void) {
    unsigned eax = 7, ebx, ecx = 1, edx;
    if (!__builtin_cpu_supports("avx2")) {
        return false;
    }
    __asm__("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
    return (eax >> 4 & 1) != 0;
}

static bool cpu_has(enum isa_feature feature) {
    __builtin_cpu_init();
    switch (feature) {
    case ISA_FEATURE_NONE:
        return true;
    case ISA_FEATURE_AVXVNNI:
        return has_avxvnni();
    case ISA_FEATURE_AVX512VNNI:
        return __builtin_cpu_supports("avx512vnni");
    default:
        return false;
    }
}
#elif defined(__aarch64__)
static bool cpu_runs(enum isa isa) {
    return isa == ISA_SCALAR || isa == ISA_NEON;
}

static bool cpu_has(enum isa_feature feature) {
    const unsigned long has_dotprod = 1UL << 20; /* HWCAP_ASIMDDP */
    return feature == ISA_FEATURE_NONE ||
           (feature == ISA_FEATURE_DOTPROD && (getauxval(AT_HWCAP) & has_dotprod) != 0);
}
#else
static bool cpu_runs(enum isa isa) {
    return isa == ISA_SCALAR;
}

static bool cpu_has(enum isa_feature feature) {
    return feature == ISA_FEATURE_NONE;
}
#endif

const char *isa_feature_name(enum isa_feature feature) {
    static const char *const names[] = {"", "AVX-VNNI", "AVX512-VNNI", "dot product"};
    return names[feature];
}

/* Instruction sets that the toolchain cannot compile, from the Makefile. */
// clang-format off
const char isa_built_without[] = ""
#ifdef LACKS_avx2
    " avx2"
#endif
#ifdef LACKS_avx512
    " avx512"
#endif
#ifdef LACKS_avxvnni
    " avxvnni"
#endif
#ifdef LACKS_avx512vnni
    " avx512vnni"
#endif
#ifdef LACKS_dotprod
    " dotprod"
#endif
    ;
// clang-format on

/* The Makefile's name of an instruction set's files, as a word of isa_built_without. */
static bool built_without(const char *name) {
    char padded[64], word[32];
    snprintf(padded, sizeof padded, "%s ", isa_built_without);
    snprintf(word, sizeof word, " %s ", name);
    return strstr(padded, word) != NULL;
}

static const char *file_of(enum isa_feature feature) {
    static const char *const names[] = {"", "avxvnni", "avx512vnni", "dotprod"};
    return names[feature];
}

bool isa_available(enum isa isa) {
    return cpu_runs(isa) && !built_without(isa_name(isa));
}

bool isa_feature_available(enum isa_feature feature) {
    return cpu_has(feature) && !built_without(file_of(feature));
}

bool isa_left_out(enum isa isa, enum isa_feature feature) {
    return cpu_runs(isa) && cpu_has(feature) &&
           (built_without(isa_name(isa)) || built_without(file_of(feature)));
}

/* AVX-VNNI is worth less than AVX-512, the two others more than anything without them. */
static bool is_better(enum isa_feature feature, enum isa taken, enum isa_feature has) {
    return feature != has && (feature != ISA_FEATURE_AVXVNNI || taken < ISA_AVX512);
}

const char *isa_better_left_out(enum isa taken, enum isa_feature has, bool dots) {
    static char text[96];
    size_t used = 0;
    for (int isa = (int)taken + 1; isa < ISA_COUNT; isa++) {
        if (isa_left_out((enum isa)isa, ISA_FEATURE_NONE)) {
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", used > 0 ? ", " : "",
                                     isa_name((enum isa)isa));
        }
    }
    for (int feature = ISA_FEATURE_AVXVNNI; dots && feature <= ISA_FEATURE_DOTPROD; feature++) {
        if (isa_left_out(ISA_SCALAR, (enum isa_feature)feature) &&
            is_better((enum isa_feature)feature, taken, has)) {
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", used > 0 ? ", " : "",
                                     isa_feature_name((enum isa_feature)feature));
        }
    }
    return used > 0 ? text : NULL;
}
