#include "isa.h"

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
bool isa_available(enum isa isa) {
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

/* AVX-VNNI (CPUID leaf 7.1 EAX bit 4) has no name in clang 14's __builtin_cpu_supports; AVX2's answer covers
 * XCR0. */
static bool has_avxvnni(void) {
    unsigned eax = 7, ebx, ecx = 1, edx;
    if (!__builtin_cpu_supports("avx2")) {
        return false;
    }
    __asm__("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
    return (eax >> 4 & 1) != 0;
}

bool isa_feature_available(enum isa_feature feature) {
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
bool isa_available(enum isa isa) {
    return isa == ISA_SCALAR || isa == ISA_NEON;
}

bool isa_feature_available(enum isa_feature feature) {
    const unsigned long has_dotprod = 1UL << 20; /* HWCAP_ASIMDDP */
    return feature == ISA_FEATURE_NONE ||
           (feature == ISA_FEATURE_DOTPROD && (getauxval(AT_HWCAP) & has_dotprod) != 0);
}
#else
bool isa_available(enum isa isa) {
    return isa == ISA_SCALAR;
}

bool isa_feature_available(enum isa_feature feature) {
    return feature == ISA_FEATURE_NONE;
}
#endif

const char *isa_feature_name(enum isa_feature feature) {
    static const char *const names[] = {"", "AVX-VNNI", "AVX512-VNNI", "dot product"};
    return names[feature];
}
