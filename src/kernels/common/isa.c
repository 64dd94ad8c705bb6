#include "common/isa.h"

#include <stdio.h>
#include <string.h>
#if defined(__aarch64__)
#include <sys/auxv.h>
#include <sys/prctl.h>
#elif defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
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

/* EAX (part 1) or EDX (part 0) of CPUID leaf 7: not all of its bits have a name in every compiler's
 * __builtin_cpu_supports, whose answer for AVX2 and AVX-512 covers XCR0. */
static unsigned leaf_7(unsigned part) {
    unsigned eax = 7, ebx, ecx = part, edx;
    if (!__builtin_cpu_supports("avx2")) {
        return 0;
    }
    __asm__("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
    return part == 1 ? eax : edx;
}

/* Linux gives a process the 8 KiB of tiles only when it asks; before 5.16 it has none to give. */
static bool may_use_tiles(void) {
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    const unsigned bf16_tile_int8 = 1U << 22 | 1U << 24 | 1U << 25;
    return (leaf_7(0) & bf16_tile_int8) == bf16_tile_int8 &&
           syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

static bool cpu_has(enum isa_feature feature) {
    __builtin_cpu_init();
    switch (feature) {
    case ISA_FEATURE_NONE:
        return true;
    case ISA_FEATURE_AVXVNNI:
        return (leaf_7(1) >> 4 & 1) != 0;
    case ISA_FEATURE_AVX512VNNI:
        return __builtin_cpu_supports("avx512vnni");
    case ISA_FEATURE_AVX512BF16:
        return (leaf_7(1) >> 5 & 1) != 0;
    case ISA_FEATURE_AVX512FP16:
        return (leaf_7(0) >> 23 & 1) != 0;
    case ISA_FEATURE_AMX:
        return may_use_tiles();
    default:
        return false;
    }
}
#elif defined(__aarch64__)
static bool cpu_runs(enum isa isa) {
    return isa == ISA_SCALAR || isa == ISA_NEON;
}

static bool cpu_has(enum isa_feature feature) {
    const unsigned long first = getauxval(AT_HWCAP), second = getauxval(AT_HWCAP2);
    enum { GET_VECTOR_LENGTH = 51, BYTES = 0xffff };
    switch (feature) {
    case ISA_FEATURE_NONE:
        return true;
    case ISA_FEATURE_DOTPROD:
        return (first >> 20 & 1) != 0; /* HWCAP_ASIMDDP */
    case ISA_FEATURE_FP16:
        return (first >> 10 & 1) != 0; /* HWCAP_ASIMDHP */
    case ISA_FEATURE_I8MM:
        return (second >> 13 & 1) != 0; /* HWCAP2_I8MM */
    case ISA_FEATURE_BF16:
        return (second >> 14 & 1) != 0; /* HWCAP2_BF16 */
    case ISA_FEATURE_SVE:
        return (first >> 22 & 1) != 0 && (prctl(GET_VECTOR_LENGTH) & BYTES) == 64; /* HWCAP_SVE */
    default:
        return false;
    }
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
    static const char *const names[] = {
        "",    "AVX-VNNI",        "AVX512-VNNI", "dot product", "AVX512-BF16",    "AVX512-FP16",
        "AMX", "FP16 arithmetic", "I8MM",        "BF16",        "SVE of 512 bits"};
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
#ifdef LACKS_avx512bf16
    " avx512bf16"
#endif
#ifdef LACKS_avx512fp16
    " avx512fp16"
#endif
#ifdef LACKS_amx
    " amx"
#endif
#ifdef LACKS_fp16
    " fp16"
#endif
#ifdef LACKS_i8mm
    " i8mm"
#endif
#ifdef LACKS_bf16
    " bf16"
#endif
#ifdef LACKS_sve
    " sve"
#endif
    ;
// clang-format on

/* The Makefile's name of an instruction set's files, as a word of isa_built_without. */
static bool built_without(const char *name) {
    char padded[128], word[32];
    snprintf(padded, sizeof padded, "%s ", isa_built_without);
    snprintf(word, sizeof word, " %s ", name);
    return strstr(padded, word) != NULL;
}

static const char *file_of(enum isa_feature feature) {
    static const char *const names[] = {"",           "avxvnni",    "avx512vnni", "dotprod",
                                        "avx512bf16", "avx512fp16", "amx",        "fp16",
                                        "i8mm",       "bf16",       "sve"};
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
