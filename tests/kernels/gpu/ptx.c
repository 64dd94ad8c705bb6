#include "gpu/ptx.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    LINES = 640,
    OPERANDS = 144,
    NAMES = 512,
    NAME = 32,
    THREADS = 1024,
    SHARED = 65536,
    GROUP = 128, /* threads of a wgmma */
    COLUMNS = 256
};

enum kind { REGISTER, NUMBER, MEMORY, SPECIAL };

enum action {
    UNKNOWN,
    NOTHING,
    BRANCH,
    END,
    MOVE,
    SELECT,
    LESS,
    NOT_LESS,
    EQUAL,
    UNEQUAL,
    ADD,
    SUBTRACT,
    MULTIPLY,
    MULTIPLY_ADD,
    MAXIMUM,
    AND,
    OR,
    XOR,
    LEFT,
    RIGHT,
    ADD_FLOAT,
    FMA_DOUBLE,
    FMA_FLOAT,
    FMA_HALVES,
    PARAMETER,
    LOAD,
    STORE,
    ADD_TO,
    BULK_LOAD,
    BULK_STORE,
    TEST_WAIT,
    SHUFFLE,
    WARP_PRODUCT,
    GROUP_PRODUCT
};

/* Beginnings of the names of instructions. Bulk copies finish at once, so nothing waits for them.
 */
static const struct {
    const char *name;
    enum action action;
} actions[] = {{"mov.", MOVE},
               {"cvt.", MOVE},
               {"selp.", SELECT},
               {"setp.lt.", LESS},
               {"setp.ge.", NOT_LESS},
               {"setp.eq.", EQUAL},
               {"setp.ne.", UNEQUAL},
               {"add.f32", ADD_FLOAT},
               {"add.", ADD},
               {"sub.", SUBTRACT},
               {"mul.", MULTIPLY},
               {"mad.", MULTIPLY_ADD},
               {"max.", MAXIMUM},
               {"and.", AND},
               {"or.", OR},
               {"xor.", XOR},
               {"shl.", LEFT},
               {"shr.", RIGHT},
               {"fma.rn.f64", FMA_DOUBLE},
               {"fma.rn.f32", FMA_FLOAT},
               {"fma.rn.f16x2", FMA_HALVES},
               {"ld.param.", PARAMETER},
               {"ld.", LOAD},
               {"st.", STORE},
               {"red.global.add.", ADD_TO},
               {"shfl.sync.bfly.", SHUFFLE},
               {"mma.sync.", WARP_PRODUCT},
               {"wgmma.mma_async.", GROUP_PRODUCT},
               {"wgmma.", NOTHING},
               {"cp.async.bulk.shared", BULK_LOAD},
               {"cp.async.bulk.global", BULK_STORE},
               {"cp.async.bulk.", NOTHING},
               {"mbarrier.try_wait.", TEST_WAIT},
               {"mbarrier.", NOTHING},
               {"fence.", NOTHING},
               {"bar.sync", NOTHING},
               {"bra", BRANCH},
               {"ret", END}};

/* Elements of matrices. */
enum type { F64, F32, S32, TF32, BF16, F16, E4M3, S8 };

static const struct {
    const char *name;
    int bits;
} types[] = {
    [F64] = {"f64", 64},   [F32] = {"f32", 32}, [S32] = {"s32", 32},  [TF32] = {"tf32", 32},
    [BF16] = {"bf16", 16}, [F16] = {"f16", 16}, [E4M3] = {"e4m3", 8}, [S8] = {"s8", 8}};
enum { TYPES = sizeof types / sizeof types[0] };

/* A product of matrices: m rows, n columns, k products an element. */
struct product {
    int m, n, k;
    enum type result, element;
};

struct operand {
    enum kind kind;
    int id; /* number of the register, also of an address */
    uint64_t number;
};

struct line {
    char op[96];
    enum action action;
    bool wide, shared; /* 64 bits; in shared memory */
    int guard;         /* register of the predicate, or -1 */
    bool unless;
    int target; /* line of a branch */
    struct product product;
    int count;
    struct operand operand[OPERANDS];
};

struct program {
    struct line line[LINES];
    int lines;
    char names[NAMES][NAME], labels[32][NAME], shared[8][NAME];
    uint64_t at_label[32], at_shared[8], parameter[16];
    char parameters[16][NAME];
    int name_count, label_count, shared_count, parameter_count;
};

struct block {
    const struct program *program;
    unsigned index, size, grid;
    int at[THREADS]; /* next line of a thread; `lines` if it has ended */
    uint64_t registers[THREADS][NAMES];
    /* The last product of wgmma, of these descriptors; NULL once shared memory has changed. */
    double product[64][COLUMNS];
    const struct line *multiplied_by;
    uint64_t multiplied[2];
    _Alignas(1024) unsigned char shared[SHARED];
};

static int find_name(char (*names)[NAME], int count, const char *name) {
    for (int i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

static int name_of(struct program *p, const char *name) {
    int id = find_name(p->names, p->name_count, name);
    if (id < 0 && p->name_count < NAMES) {
        id = p->name_count++;
        snprintf(p->names[id], NAME, "%s", name);
    }
    return id;
}

static void parse_operand(struct program *p, struct line *line, char *word) {
    struct operand *operand = &line->operand[line->count++];
    if (word[0] == '[') {
        char *plus = strchr(word, '+');
        word++;
        word[strcspn(word, "+]")] = '\0';
        const int parameter = find_name(p->parameters, p->parameter_count, word);
        if (parameter >= 0) {
            *operand = (struct operand){NUMBER, 0, p->parameter[parameter]};
            return;
        }
        *operand = (struct operand){MEMORY, name_of(p, word), 0};
        operand->number = plus != NULL ? strtoull(plus + 1, NULL, 10) : 0;
    } else if (word[0] == '%') {
        const bool is_special = strchr(word, '.') != NULL || strcmp(word, "%clock64") == 0 ||
                                strcmp(word, "%globaltimer") == 0;
        *operand = (struct operand){is_special ? SPECIAL : REGISTER, name_of(p, word), 0};
    } else if (word[0] == '0' && (word[1] == 'f' || word[1] == 'd')) {
        *operand = (struct operand){NUMBER, 0, strtoull(word + 2, NULL, 16)};
    } else {
        const int shared = find_name(p->shared, p->shared_count, word);
        *operand = (struct operand){NUMBER, 0, 0};
        operand->number = shared >= 0 ? p->at_shared[shared] : (uint64_t)strtoll(word, NULL, 0);
    }
}

static void parse_action(struct line *line) {
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) {
        if (strncmp(line->op, actions[i].name, strlen(actions[i].name)) == 0) {
            line->action = actions[i].action;
            break;
        }
    }
    line->wide = strncmp(line->op, "cvt.u32", 7) != 0 &&
                 (strstr(line->op, "64") != NULL || strstr(line->op, ".wide") != NULL);
    line->shared = strstr(line->op, ".shared.") != NULL;
}

static enum type find_type(const char *name) {
    for (int type = 0; type < TYPES; type++) {
        if (strcmp(types[type].name, name) == 0) {
            return (enum type)type;
        }
    }
    fprintf(stderr, "the tests do not know elements of type %s\n", name);
    abort();
}

/* Reads "mma.sync.aligned.mMnNkK.row.col.D.A.B.C" or "wgmma.mma_async.sync.aligned.mMnNkK.D.A.B".
 */
static void parse_product(struct line *line) {
    struct product *product = &line->product;
    char result[8], element[8];
    const char *format = line->action == GROUP_PRODUCT
                             ? "wgmma.mma_async.sync.aligned.m%dn%dk%d.%7[a-z0-9].%7[a-z0-9]"
                             : "mma.sync.aligned.m%dn%dk%d.row.col.%7[a-z0-9].%7[a-z0-9]";
    if (sscanf(line->op, format, &product->m, &product->n, &product->k, result, element) != 5) {
        fprintf(stderr, "the tests cannot read %s\n", line->op);
        abort();
    }
    product->result = find_type(result);
    product->element = find_type(element);
}

static void parse_line(struct program *p, char *text) {
    struct line *line = &p->line[p->lines];
    char *rest = text, *word = strtok_r(text, " ,{}\n", &rest);
    if (word == NULL || word[0] == '.' || word[0] == '/') {
        return;
    }
    if (p->lines == LINES) {
        fprintf(stderr, "the tests cannot run a kernel of more than %d lines\n", LINES);
        abort();
    }
    *line = (struct line){.guard = -1};
    if (word[0] == '@') {
        line->unless = word[1] == '!';
        line->guard = name_of(p, word + 1 + line->unless);
        word = strtok_r(NULL, " ,{}\n", &rest);
    }
    snprintf(line->op, sizeof line->op, "%s", word);
    parse_action(line);
    if (line->action == WARP_PRODUCT || line->action == GROUP_PRODUCT) {
        parse_product(line);
    }
    while ((word = strtok_r(NULL, " ,{}\n", &rest)) != NULL) {
        if (line->action == BRANCH) {
            line->target = find_name(p->labels, p->label_count, word);
        } else if (strcmp(word, "_") != 0) {
            parse_operand(p, line, word);
        }
    }
    p->lines++;
}

/* Shared memory of the module: ".shared .align 8 .b64 barriers[4];". */
static void parse_shared(struct program *p, const char *module) {
    uint64_t end = 0;
    for (const char *at = module; (at = strstr(at, "\n.shared ")) != NULL; at++) {
        unsigned align, bits, count;
        char name[NAME];
        if (sscanf(at, "\n.shared .align %u .b%u %31[a-z][%u]", &align, &bits, name, &count) == 4) {
            snprintf(p->shared[p->shared_count], NAME, "%s", name);
            end = (end + align - 1) / align * align;
            p->at_shared[p->shared_count++] = end;
            end += bits / 8 * count;
        }
    }
}

static void parse_parameters(struct program *p, char *list, void **values) {
    char *rest = list, kind[8], name[NAME];
    for (char *word = strtok_r(list, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest)) {
        if (sscanf(word, " .param .%7s %31s", kind, name) == 2) {
            const int i = p->parameter_count++;
            snprintf(p->parameters[i], NAME, "%s", name);
            memcpy(&p->parameter[i], values[i], strcmp(kind, "u64") == 0 ? 8 : 4);
        }
    }
}

static bool parse(struct program *p, const char *module, const char *name, void **values) {
    char wanted[64];
    snprintf(wanted, sizeof wanted, ".visible .entry %s(", name);
    const char *entry = strstr(module, wanted);
    if (entry == NULL) {
        return false;
    }
    char *text = strdup(entry + strlen(wanted)), *rest;
    char *body = strchr(text, '{') + 1;
    *strchr(text, ')') = '\0';
    for (char *end = body; end != NULL; end = strchr(end + 1, '}')) {
        if (end[0] == '}' && end[-1] == '\n') {
            *end = '\0'; /* end of the kernel; braces of operands have a comma before or after */
            break;
        }
    }
    parse_shared(p, module);
    parse_parameters(p, text, values);
    for (int pass = 0; pass < 2; pass++) { /* first labels, then lines that name them */
        char *copy = strdup(body);
        p->lines = 0;
        for (char *line = strtok_r(copy, "\n", &rest); line != NULL;
             line = strtok_r(NULL, "\n", &rest)) {
            char *colon = strchr(line, ':');
            if (colon != NULL && colon[1] == '\0') {
                *colon = '\0';
                if (pass == 0) {
                    snprintf(p->labels[p->label_count], NAME, "%s", line);
                    p->at_label[p->label_count++] = (uint64_t)p->lines;
                }
                continue;
            }
            line[strcspn(line, ";")] = '\0';
            parse_line(p, line);
        }
        free(copy);
    }
    free(text);
    return true;
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static uint64_t special(const struct block *block, unsigned thread, const char *name) {
    return strcmp(name, "%tid.x") == 0      ? thread
           : strcmp(name, "%ctaid.x") == 0  ? block->index
           : strcmp(name, "%ntid.x") == 0   ? block->size
           : strcmp(name, "%nctaid.x") == 0 ? block->grid
                                            : now();
}

static uint64_t value(struct block *block, unsigned thread, const struct operand *operand) {
    if (operand->kind == NUMBER) {
        return operand->number;
    }
    if (operand->kind == SPECIAL) {
        return special(block, thread, block->program->names[operand->id]);
    }
    return block->registers[thread][operand->id] + operand->number;
}

static double double_of(uint64_t bits) {
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static uint64_t of_double(double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

static float float_of(uint64_t bits) {
    const uint32_t low = (uint32_t)bits;
    float number;
    memcpy(&number, &low, sizeof number);
    return number;
}

static uint64_t of_float(float number) {
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

/* Decodes a number with so many bits of exponent and mantissa. */
static double small_of(uint64_t bits, int exponent_bits, int mantissa_bits) {
    const int exponent = (int)(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
    const double fraction = (double)(bits & ((1U << mantissa_bits) - 1)) / (1 << mantissa_bits);
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const double number =
        exponent > 0 ? ldexp(1 + fraction, exponent - bias) : ldexp(fraction, 1 - bias);
    return bits >> (exponent_bits + mantissa_bits) & 1 ? -number : number;
}

/* Rounds to the nearest number of FP16, and to the even one of two that are equally near. */
static uint64_t half_of(double number) {
    const int least = -13; /* exponent of subnormal numbers */
    int exponent;
    (void)frexp(number, &exponent);
    exponent = number == 0 || exponent < least ? least : exponent;
    const double last_places = nearbyint(ldexp(fabs(number), 11 - exponent));
    const uint64_t bits = (uint64_t)last_places + ((uint64_t)(exponent - least) << 10);
    return (signbit(number) ? 0x8000 : 0) | (bits < 0x7c00 ? bits : 0x7c00);
}

static double element(enum type type, uint64_t bits) {
    switch (type) {
    case F64:
        return double_of(bits);
    case F32:
    case TF32:
        return float_of(bits);
    case BF16:
        return float_of(bits << 16);
    case F16:
        return small_of(bits & 0xffff, 5, 10);
    case E4M3:
        return small_of(bits & 0xff, 4, 3);
    case S8:
        return (double)(int8_t)bits;
    case S32:
        break;
    }
    return (double)(int32_t)bits;
}

/* Adds to a result register of type s32, f32 or f64; integers wrap around. */
static void add_to(uint64_t *bits, enum type type, double sum) {
    if (type == F64) {
        *bits = of_double(double_of(*bits) + sum);
    } else if (type == F32) {
        *bits = of_float((float)(float_of(*bits) + sum));
    } else {
        *bits = (uint32_t)(*bits + (uint64_t)(int64_t)sum);
    }
}

/* One warp of "mma.sync.aligned.mMnNkK.row.col.D.A.B.C d, a, b, c", laid out as the PTX ISA says:
 * lane / 4 is a row of A and a column of B; lane % 4 chooses among four registers' elements. */
static void multiply_warp(struct block *block, unsigned first, const struct line *line) {
    const int m = line->product.m, n = line->product.n, k = line->product.k;
    const enum type type = line->product.element;
    const int bits = types[type].bits, held = bits == 64 ? 1 : 32 / bits;
    const int results = m * n / 32, left = m * k / 32 / held, right = n * k / 32 / held;
    double a[16][32], b[32][8];
    for (unsigned lane = 0; lane < 32; lane++) {
        const uint64_t *registers = block->registers[first + lane];
        const int group = (int)lane / 4, within = (int)lane % 4;
        for (int i = 0; i < left * held; i++) {
            const int index = i / held, part = i % held;
            const uint64_t word = registers[line->operand[results + index].id];
            const int row = group + (m == 16 && index % 2 == 1 ? 8 : 0);
            const int column = within * held + part + index / (m / 8) * 4 * held;
            a[row][column] = element(type, word >> (part * bits % 64));
        }
        for (int i = 0; i < right * held; i++) {
            const int index = i / held, part = i % held;
            const uint64_t word = registers[line->operand[results + left + index].id];
            b[within * held + part + index * 4 * held][group] =
                element(type, word >> (part * bits % 64));
        }
    }
    for (unsigned lane = 0; lane < 32; lane++) {
        for (int i = 0; i < results; i++) {
            const int row = (int)lane / 4 + i / 2 * 8, column = (int)lane % 4 * 2 + i % 2;
            double sum = 0;
            for (int at = 0; at < k; at++) {
                sum += a[row][at] * b[at][column];
            }
            add_to(&block->registers[first + lane][line->operand[i].id], line->product.result, sum);
        }
    }
}

/* Returns an element of a matrix in shared memory: cores of 8 rows by 16 bytes, by the descriptor's
 * offsets.
 */
static double shared_element(const struct block *block, uint64_t descriptor, enum type type,
                             int row, int column) {
    const uint64_t start = (descriptor & 0x3fff) << 4, leading = (descriptor >> 16 & 0x3fff) << 4,
                   stride = (descriptor >> 32 & 0x3fff) << 4;
    const int bytes = types[type].bits / 8, at = column * bytes;
    const unsigned char *from = block->shared + start + (uint64_t)(row / 8) * stride +
                                (uint64_t)(at / 16) * leading + row % 8 * 16 + at % 16;
    uint64_t bits = 0;
    for (int i = 0; i < bytes; i++) {
        bits |= (uint64_t)from[i] << 8 * i;
    }
    return element(type, bits);
}

static void multiply_shared(struct block *block, const struct line *line, uint64_t a, uint64_t b) {
    const enum type type = line->product.element;
    for (int row = 0; row < 64; row++) {
        for (int column = 0; column < COLUMNS; column++) {
            double sum = 0;
            for (int at = 0; at < line->product.k; at++) {
                sum += shared_element(block, a, type, row, at) *
                       shared_element(block, b, type, column, at);
            }
            block->product[row][column] = sum;
        }
    }
}

/* One group of "wgmma.mma_async.sync.aligned.m64n256kK.D.A.B d, a, b, add, sign of a, ...". */
static void multiply_group(struct block *block, unsigned first, const struct line *line) {
    const uint64_t a = block->registers[first][line->operand[GROUP].id],
                   b = block->registers[first][line->operand[GROUP + 1].id];
    const bool is_known = block->multiplied_by != NULL &&
                          strcmp(block->multiplied_by->op, line->op) == 0 &&
                          block->multiplied[0] == a && block->multiplied[1] == b;
    if (!is_known) {
        multiply_shared(block, line, a, b);
        block->multiplied_by = line;
        block->multiplied[0] = a;
        block->multiplied[1] = b;
    }
    const bool minus = line->count > GROUP + 3 && (int64_t)line->operand[GROUP + 3].number < 0;
    for (unsigned thread = 0; thread < GROUP; thread++) {
        for (int i = 0; i < GROUP; i++) {
            const int row = (int)thread / 32 * 16 + (int)thread % 32 / 4 + i / 2 % 2 * 8;
            const int column = i / 4 * 8 + (int)thread % 4 * 2 + i % 2;
            const double product = block->product[row][column];
            add_to(&block->registers[first + thread][line->operand[i].id], line->product.result,
                   minus ? -product : product);
        }
    }
}

static void shuffle_warp(struct block *block, unsigned first, const struct line *line) {
    uint64_t from[32];
    for (unsigned lane = 0; lane < 32; lane++) {
        from[lane] = value(block, first + lane, &line->operand[1]);
    }
    for (unsigned lane = 0; lane < 32; lane++) {
        block->registers[first + lane][line->operand[0].id] = from[lane ^ line->operand[2].number];
    }
}

/* Runs an instruction that the threads of a warp or group execute together. */
static bool step_together(struct block *block, const struct line *line) {
    void (*run)(struct block *, unsigned, const struct line *) =
        line->action == SHUFFLE         ? shuffle_warp
        : line->action == WARP_PRODUCT  ? multiply_warp
        : line->action == GROUP_PRODUCT ? multiply_group
                                        : NULL;
    const unsigned width = line->action == GROUP_PRODUCT ? GROUP : 32;
    for (unsigned first = 0; run != NULL && first + width <= block->size; first += width) {
        run(block, first, line);
    }
    return run != NULL;
}

/* Runs a load, a store or an atomic addition. Registers of a vector are neighbours. */
static void step_memory(struct block *block, unsigned thread, const struct line *line) {
    const bool loads = line->action == LOAD, adds = line->action == ADD_TO;
    const size_t bytes = line->wide ? 8 : 4;
    const uint64_t at = value(block, thread, &line->operand[loads ? line->count - 1 : 0]);
    unsigned char *memory = line->shared ? block->shared + at : (unsigned char *)(uintptr_t)at;
    if (line->shared && !loads) {
        block->multiplied_by = NULL;
    }
    for (int i = 0; i < line->count - 1; i++) {
        uint64_t *held = &block->registers[thread][line->operand[loads ? i : i + 1].id], sum = 0;
        if (loads) {
            *held = 0;
            memcpy(held, memory + bytes * (size_t)i, bytes);
            continue;
        }
        if (adds) {
            memcpy(&sum, memory, bytes);
        }
        sum += *held;
        memcpy(memory + bytes * (size_t)i, &sum, bytes);
    }
}

static uint64_t multiply_halves(uint64_t a, uint64_t b, uint64_t c) {
    uint64_t both = 0;
    for (int at = 0; at <= 16; at += 16) {
        const double exact = small_of(a >> at & 0xffff, 5, 10) * small_of(b >> at & 0xffff, 5, 10) +
                             small_of(c >> at & 0xffff, 5, 10);
        both |= half_of(exact) << at;
    }
    return both;
}

static uint64_t compute(const struct line *line, uint64_t a, uint64_t b, uint64_t c) {
    switch (line->action) {
    case MOVE:
        return a;
    case SELECT:
        return c != 0 ? a : b;
    case LESS:
        return a < b;
    case NOT_LESS:
        return a >= b;
    case EQUAL:
        return a == b;
    case UNEQUAL:
        return a != b;
    case ADD:
        return a + b;
    case SUBTRACT:
        return a - b;
    case MULTIPLY:
        return a * b;
    case MULTIPLY_ADD:
        return a * b + c;
    case MAXIMUM:
        return a > b ? a : b;
    case AND:
        return a & b;
    case OR:
        return a | b;
    case XOR:
        return a ^ b;
    case LEFT:
        return a << b;
    case RIGHT:
        return a >> b;
    case ADD_FLOAT:
        return of_float(float_of(a) + float_of(b));
    case FMA_DOUBLE:
        return of_double(fma(double_of(a), double_of(b), double_of(c)));
    case FMA_FLOAT:
        return of_float(fmaf(float_of(a), float_of(b), float_of(c)));
    case FMA_HALVES:
        return multiply_halves(a, b, c);
    case TEST_WAIT:
        return 1;
    default:
        fprintf(stderr, "the tests cannot run %s\n", line->op);
        abort();
    }
}

static void step_thread(struct block *block, unsigned thread, const struct line *line) {
    uint64_t *registers = block->registers[thread], in[4] = {0};
    for (int i = 0; i < line->count && i <= 3; i++) {
        in[i] = value(block, thread, &line->operand[i]);
    }
    switch (line->action) {
    case NOTHING:
        break;
    case BRANCH:
        block->at[thread] = (int)block->program->at_label[line->target];
        break;
    case END:
        block->at[thread] = block->program->lines;
        break;
    case PARAMETER:
        registers[line->operand[0].id] = in[1];
        break;
    case LOAD:
    case STORE:
    case ADD_TO:
        step_memory(block, thread, line);
        break;
    case BULK_LOAD:
        memcpy(block->shared + in[0], (void *)(uintptr_t)in[1], in[2]);
        block->multiplied_by = NULL;
        break;
    case BULK_STORE:
        memcpy((void *)(uintptr_t)in[0], block->shared + in[1], in[2]);
        break;
    default:
        in[0] = compute(line, in[1], in[2], in[3]);
        registers[line->operand[0].id] = line->wide ? in[0] : (uint32_t)in[0];
    }
}

/* Runs the line of the threads that are farthest behind. Returns false if all have ended. */
static bool step(struct block *block) {
    int least = block->program->lines;
    for (unsigned thread = 0; thread < block->size; thread++) {
        least = block->at[thread] < least ? block->at[thread] : least;
    }
    if (least == block->program->lines) {
        return false;
    }
    const struct line *line = &block->program->line[least];
    const bool together = step_together(block, line);
    for (unsigned thread = 0; thread < block->size; thread++) {
        if (block->at[thread] != least) {
            continue;
        }
        block->at[thread] = least + 1;
        const bool holds =
            line->guard < 0 || (block->registers[thread][line->guard] != 0) != line->unless;
        if (holds && !together) {
            step_thread(block, thread, line);
        }
    }
    return true;
}

bool ptx_run(const char *module, const char *name, unsigned grid, unsigned block,
             void **parameters) {
    struct program *program = calloc(1, sizeof *program);
    struct block *state = calloc(1, sizeof *state + 1024);
    bool found = program != NULL && state != NULL && block <= THREADS &&
                 parse(program, module, name, parameters);
    for (unsigned i = 0; found && i < grid; i++) {
        memset(state->at, 0, sizeof state->at);
        state->multiplied_by = NULL;
        state->program = program;
        state->index = i;
        state->size = block;
        state->grid = grid;
        while (step(state)) {
        }
    }
    free(program);
    free(state);
    return found;
}
