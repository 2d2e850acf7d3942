/* A libcuda.so.1 without a GPU: one device whose memory is the host's. Copies are done, launches are
 * written down, and a failure comes when it is asked for. It refuses what the real one refuses: a
 * call without a current context, an address that was not allocated, a handle that is gone.
 *
 * What kernels do is said by the library that FAKE_CUDA_PLAN names, in its function
 *     int fake_kernel(const char *name, const unsigned *grid, const unsigned *block,
 *                     const void *arguments, double *microseconds);
 * which computes, says how long that takes, and gives a status: from 700 on the next call has it,
 * as of work that goes on after its launch. Without arguments it is asked for what a recorded
 * launch will take. Without a plan a kernel does nothing.
 *
 * A graph does its copies in the order in which they were recorded, and no launch. With
 * FAKE_CUDA_REPLAY it does both, in an order that its streams allow: at its first launch one stream
 * goes ahead as far as it may, at the second launch the next one, and so on.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INVALID = 1, MEMORY = 2, NO_DEVICE = 100, BAD_IMAGE = 200, BAD_CONTEXT = 201,
       BAD_HANDLE = 400, NOT_FOUND = 500, ILLEGAL = 700, CAPTURE_UNJOINED = 904,
       UNSUPPORTED = 801 };

static const struct { int status; const char *name, *text; } STATUSES[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {INVALID, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {BAD_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {BAD_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {BAD_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {ILLEGAL, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {UNSUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "system has unsupported display driver / cuda driver combination"},
    {CAPTURE_UNJOINED, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capture was not ended in the same stream as it began"},
};

/* ---- what happened, and what is to happen ---- */

static pthread_mutex_t guard = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static char *written;
static size_t written_bytes, written_room;
static char failing[64];
static int failing_status, failing_times, sticky, started;

static void note(const char *format, ...)
{
    char line[4096];
    va_list values;
    va_start(values, format);
    int length = vsnprintf(line, sizeof line - 1, format, values);
    va_end(values);
    line[length++] = '\n';
    line[length] = 0;
    pthread_mutex_lock(&guard);
    if (written_bytes + length + 1 > written_room)
        written = realloc(written, written_room = 2 * (written_room + length + 1));
    memcpy(written + written_bytes, line, length + 1);
    written_bytes += length;
    pthread_mutex_unlock(&guard);
}

const char *fake_log(void) { return written ? written : ""; }
void fake_forget(void) { written_bytes = 0; if (written) *written = 0; }

void fake_fail(const char *function, int status, int times)
{
    strncpy(failing, function, sizeof failing - 1);
    failing_status = status;
    failing_times = times;
}

/* The status of a call that starts work: one of work itself comes with the next call. */
static int status_of_work(int status)
{
    if (status < ILLEGAL || status >= 720 || status == 701) return status;
    sticky = status;
    return 0;
}

static int failure(const char *function)
{
    size_t length = strlen(failing);
    if (sticky) return sticky;
    if (!length || strncmp(failing, function, length) || (function[length] && function[length] != '_'))
        return 0;
    if (--failing_times <= 0) failing[0] = 0;
    if (failing_status >= ILLEGAL && failing_status < 720) sticky = failing_status;
    return failing_status;
}

static int setting(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

/* ---- contexts: the primary one of the one device ---- */

static char primary;
static int retained;
static __thread void *stack[16];
static __thread int depth;

/* A call that needs a context: written down, refused without one, failed on demand. */
#define CALL(...) \
    do { \
        note(__VA_ARGS__); \
        if (!started) return 3; \
        if (!depth) return BAD_CONTEXT; \
        int status_ = failure(__func__); \
        if (status_) return status_; \
    } while (0)

int cuInit(unsigned flags)
{
    (void)flags;
    int status = setting("FAKE_CUDA_INIT", 0);
    started = !status;
    return status;
}
int cuDriverGetVersion(int *version) { *version = setting("FAKE_CUDA_VERSION", 13000); return 0; }
int cuDeviceGetCount(int *count) { *count = setting("FAKE_CUDA_DEVICES", 1); return started ? 0 : 3; }
int cuDeviceGet(int *device, int index) { *device = index; return index == 0 ? 0 : 101; }
int cuDeviceGetName(char *name, int room, int device)
{
    (void)device;
    snprintf(name, room, "Fake H200");
    return 0;
}
int cuDeviceTotalMem_v2(size_t *bytes, int device) { (void)device; *bytes = 1ull << 30; return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    static const struct { int attribute, value; } VALUES[] = {
        {1, 1024}, {2, 1024}, {3, 1024}, {4, 64}, {5, 2147483647}, {6, 65535}, {7, 65535},
        {10, 32}, {16, 132}, {38, 62914560}, {39, 2048}, {75, 9}, {76, 0}, {81, 233472},
        {82, 65536}, {97, 232448},
    };
    (void)device;
    for (size_t i = 0; i < sizeof VALUES / sizeof *VALUES; ++i)
        if (VALUES[i].attribute == attribute) {
            *value = VALUES[i].value;
            return 0;
        }
    return INVALID;
}
int cuDevicePrimaryCtxRetain(void **context, int device)
{
    (void)device;
    note("cuDevicePrimaryCtxRetain");
    *context = &primary;
    ++retained;
    return failure(__func__);
}
int cuDevicePrimaryCtxRelease_v2(int device) { (void)device; note("cuDevicePrimaryCtxRelease"); --retained; return 0; }
int cuCtxPushCurrent_v2(void *context)
{
    if (context != &primary || depth == 16) return BAD_CONTEXT;
    stack[depth++] = context;
    note("cuCtxPushCurrent");
    return 0;
}
int cuCtxPopCurrent_v2(void **context)
{
    note("cuCtxPopCurrent");
    if (!depth) return BAD_CONTEXT;
    --depth;
    if (context) *context = stack[depth];
    return 0;
}
int cuCtxSynchronize(void) { CALL("cuCtxSynchronize"); return 0; }
int fake_depth(void) { return depth; }

int cuGetErrorString(int status, const char **text)
{
    *text = NULL;
    for (size_t i = 0; i < sizeof STATUSES / sizeof *STATUSES; ++i)
        if (STATUSES[i].status == status) *text = STATUSES[i].text;
    return *text ? 0 : INVALID;
}
int cuGetErrorName(int status, const char **name)
{
    *name = NULL;
    for (size_t i = 0; i < sizeof STATUSES / sizeof *STATUSES; ++i)
        if (STATUSES[i].status == status) *name = STATUSES[i].name;
    return *name ? 0 : INVALID;
}

/* ---- things that are made and must be given back ---- */

typedef struct { char kind; void *place; size_t bytes; int number; } Thing;
static Thing things[1024];
static int thing_count[128], thing_number[128];

static Thing *thing_at(char kind, const void *place)
{
    for (int i = 0; i < 1024; ++i)
        if (things[i].kind == kind && things[i].place == place) return &things[i];
    return NULL;
}
static Thing *make_thing(char kind, size_t bytes)
{
    pthread_mutex_lock(&guard);
    Thing *thing = thing_at(0, NULL);
    *thing = (Thing){kind, calloc(1, bytes + 64), bytes, thing_number[(int)kind]++};
    ++thing_count[(int)kind];
    pthread_mutex_unlock(&guard);
    return thing;
}
static int drop_thing(char kind, void *place)
{
    pthread_mutex_lock(&guard);
    Thing *thing = thing_at(kind, place);
    if (thing) {
        free(thing->place);
        *thing = (Thing){0};
        --thing_count[(int)kind];
    }
    pthread_mutex_unlock(&guard);
    return thing ? 0 : kind == 'd' || kind == 'h' ? INVALID : BAD_HANDLE;
}
int fake_alive(char kind) { return thing_count[(int)kind]; }
static int number_of(char kind, void *place)
{
    Thing *thing = thing_at(kind, place);
    return thing ? thing->number : -1;
}

/* ---- memory: 'd' of the device, 'h' of the host ---- */

static Thing *thing_around(uintptr_t place)
{
    for (int i = 0; i < 1024; ++i) {
        uintptr_t first = (uintptr_t)things[i].place;
        if (things[i].kind == 'd' && place >= first && place < first + things[i].bytes)
            return &things[i];
    }
    return NULL;
}
static int inside(uintptr_t place, size_t bytes)
{
    for (int i = 0; i < 1024; ++i) {
        uintptr_t first = (uintptr_t)things[i].place;
        if (things[i].kind == 'd' && place >= first && place + bytes <= first + things[i].bytes)
            return 1;
    }
    return 0;
}
int cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    CALL("cuMemGetInfo");
    *total = 1ull << 30;
    *free_bytes = 1ull << 29;
    return 0;
}
int cuMemAlloc_v2(uintptr_t *place, size_t bytes)
{
    CALL("cuMemAlloc %zu", bytes);
    if (!bytes) return INVALID;
    if (bytes > 1ull << 29) return MEMORY;
    *place = (uintptr_t)make_thing('d', bytes)->place;
    return 0;
}
int cuMemFree_v2(uintptr_t place) { CALL("cuMemFree"); return drop_thing('d', (void *)place); }
int cuMemHostAlloc(void **place, size_t bytes, unsigned flags)
{
    CALL("cuMemHostAlloc %zu %u", bytes, flags);
    *place = make_thing('h', bytes)->place;
    return 0;
}
int cuMemFreeHost(void *place) { CALL("cuMemFreeHost"); return drop_thing('h', place); }

/* ---- streams 's', events 'e', graphs 'g' (recorded) and 'x' (ready) ---- */

typedef struct { char name[64]; void *module; int allowed; } Kernel;
/* A copy, or the launch of a kernel, that was recorded. before: those that surely come before. */
enum { MOST_NODES = 256 };
typedef struct { uint64_t bits[MOST_NODES / 64]; } Set;
typedef struct {
    Kernel *kernel;
    void *stream;
    Set before;
    uintptr_t to, from;
    size_t bytes;
    unsigned grid[3], block[3];
    char arguments[256];
} Node;
/* What was recorded: how many nodes, what they take, what becomes of them, those that are kept to be
 * done again, and how often they were; the modules whose kernels it launches. */
typedef struct {
    int nodes, status, kept, launches, modules;
    double time;
    void *module[16];
    Node node[MOST_NODES];
} Graph;
/* origin: the stream whose recording this one is a part of, NULL where it is of none. work, joined:
 * how much was put into it, and how much of that the origin has waited for. seen: what comes before
 * all that is put into it next. */
typedef struct Stream { struct Stream *origin; int work, joined; Set seen; Graph recorded; } Stream;
/* stream: where it was recorded */
typedef struct { double when; Stream *stream; int work; Set seen; } Event;
/* The device's clock, in microseconds: work takes what it takes at once. */
enum { KERNEL_TIME = 10, FILL_TIME = 50 };
static double now;

static const char *stream_name(void *stream)
{
    static __thread char name[32];
    if (!stream) return "default";
    snprintf(name, sizeof name, "stream%d", number_of('s', stream));
    return name;
}
/* 1: the work is recorded, not done. */
static int recorded(void *stream)
{
    Stream *state = stream;
    if (!state || !state->origin) return 0;
    ++state->work;
    ++state->origin->recorded.nodes;
    return 1;
}
/* Keep work that was recorded; NULL where there is no room. */
static Node *keep(Stream *stream)
{
    Graph *all = &stream->origin->recorded;
    if (all->kept == MOST_NODES) return NULL;
    Node *node = &all->node[all->kept];
    *node = (Node){.stream = stream, .before = stream->seen};
    stream->seen.bits[all->kept / 64] |= 1ull << all->kept % 64;
    ++all->kept;
    return node;
}
static int has(const Set *set, int number) { return set->bits[number / 64] >> number % 64 & 1; }
#define CHECK_STREAM(stream) if (stream && !thing_at('s', stream)) return BAD_HANDLE

int cuStreamCreate(void **stream, unsigned flags)
{
    CALL("cuStreamCreate %u", flags);
    *stream = make_thing('s', sizeof(Stream))->place;
    return 0;
}
int cuStreamDestroy_v2(void *stream) { CALL("cuStreamDestroy"); return drop_thing('s', stream); }
int cuStreamSynchronize(void *stream)
{
    CALL("cuStreamSynchronize %s", stream_name(stream));
    CHECK_STREAM(stream);
    return 0;
}
int cuStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    CALL("cuStreamWaitEvent %s event%d %u", stream_name(stream), number_of('e', event), flags);
    CHECK_STREAM(stream);
    if (!thing_at('e', event)) return BAD_HANDLE;
    Stream *of = ((Event *)event)->stream, *state = stream;
    if (!of || !of->origin) return 0;
    if (!state->origin) *state = (Stream){.origin = of->origin}; /* it joins the recording */
    ++state->work;
    for (int i = 0; i < MOST_NODES / 64; ++i) state->seen.bits[i] |= ((Event *)event)->seen.bits[i];
    if (state == of->origin) of->joined = ((Event *)event)->work;
    return 0;
}
int cuEventCreate(void **event, unsigned flags)
{
    CALL("cuEventCreate %u", flags);
    *event = make_thing('e', sizeof(Event))->place;
    return 0;
}
int cuEventDestroy_v2(void *event) { CALL("cuEventDestroy"); return drop_thing('e', event); }
int cuEventRecord(void *event, void *stream)
{
    CALL("cuEventRecord event%d %s", number_of('e', event), stream_name(stream));
    CHECK_STREAM(stream);
    if (!thing_at('e', event)) return BAD_HANDLE;
    Stream *state = stream;
    *(Event *)event = (Event){now, state && state->origin ? state : NULL, state ? state->work : 0,
                              state ? state->seen : (Set){{0}}};
    return 0;
}
int cuEventSynchronize(void *event)
{
    CALL("cuEventSynchronize event%d", number_of('e', event));
    return thing_at('e', event) ? 0 : BAD_HANDLE;
}
int cuEventElapsedTime_v2(float *milliseconds, void *begin, void *end)
{
    CALL("cuEventElapsedTime");
    if (!thing_at('e', begin) || !thing_at('e', end)) return BAD_HANDLE;
    *milliseconds = (float)(((Event *)end)->when - ((Event *)begin)->when) * 1e-3f;
    return 0;
}
int cuEventElapsedTime(float *milliseconds, void *begin, void *end) /* of CUDA before 12.8 */
{
    return cuEventElapsedTime_v2(milliseconds, begin, end);
}
int cuStreamBeginCapture_v2(void *stream, int mode)
{
    CALL("cuStreamBeginCapture %s %d", stream_name(stream), mode);
    if (!thing_at('s', stream)) return BAD_HANDLE;
    *(Stream *)stream = (Stream){.origin = stream};
    return 0;
}
int cuStreamEndCapture(void *stream, void **graph)
{
    *graph = NULL;
    CALL("cuStreamEndCapture %s", stream_name(stream));
    Stream *state = stream;
    if (state->origin != state) return CAPTURE_UNJOINED;
    int unjoined = 0;
    for (int i = 0; i < 1024; ++i) {
        Stream *other = things[i].place;
        if (things[i].kind != 's' || other == state || other->origin != state) continue;
        unjoined |= other->joined != other->work; /* by the origin itself: not through another */
        other->origin = NULL;
    }
    state->origin = NULL;
    if (unjoined) return CAPTURE_UNJOINED;
    *graph = make_thing('g', sizeof(Graph))->place;
    *(Graph *)*graph = state->recorded;
    return 0;
}
int cuGraphGetNodes(void *graph, void **nodes, size_t *count)
{
    (void)nodes;
    CALL("cuGraphGetNodes");
    *count = ((Graph *)graph)->nodes;
    return 0;
}
int cuGraphInstantiateWithFlags(void **made, void *graph, unsigned long long flags)
{
    CALL("cuGraphInstantiate %llu", flags);
    *made = make_thing('x', sizeof(Graph))->place;
    *(Graph *)*made = *(Graph *)graph;
    return 0;
}
int cuGraphDestroy(void *graph) { note("cuGraphDestroy"); return drop_thing('g', graph); }
int cuGraphExecDestroy(void *made) { CALL("cuGraphExecDestroy"); return drop_thing('x', made); }
/* ---- copies ---- */

static int copied(const char *name, uintptr_t to, uintptr_t from, size_t bytes, int into, int out,
                  void *stream)
{
    note("%s %zu %s", name, bytes, stream_name(stream));
    if (!depth) return BAD_CONTEXT;
    int status = failure(name);
    if (status) return status;
    CHECK_STREAM(stream);
    if ((into && !inside(to, bytes)) || (out && !inside(from, bytes))) return INVALID;
    if (!recorded(stream)) {
        memcpy((void *)to, (const void *)from, bytes);
        return 0;
    }
    Node *node = keep(stream);
    if (!node) return MEMORY;
    node->to = to;
    node->from = from;
    node->bytes = bytes;
    return 0;
}
int cuMemcpyHtoD_v2(uintptr_t to, uintptr_t from, size_t bytes) { return copied("cuMemcpyHtoD", to, from, bytes, 1, 0, NULL); }
int cuMemcpyDtoH_v2(uintptr_t to, uintptr_t from, size_t bytes) { return copied("cuMemcpyDtoH", to, from, bytes, 0, 1, NULL); }
int cuMemcpyHtoDAsync_v2(uintptr_t to, uintptr_t from, size_t bytes, void *stream) { return copied("cuMemcpyHtoDAsync", to, from, bytes, 1, 0, stream); }
int cuMemcpyDtoHAsync_v2(uintptr_t to, uintptr_t from, size_t bytes, void *stream) { return copied("cuMemcpyDtoHAsync", to, from, bytes, 0, 1, stream); }
int cuMemcpyDtoDAsync_v2(uintptr_t to, uintptr_t from, size_t bytes, void *stream) { return copied("cuMemcpyDtoDAsync", to, from, bytes, 1, 1, stream); }
int cuMemsetD8Async(uintptr_t to, unsigned char value, size_t bytes, void *stream)
{
    CALL("cuMemsetD8Async %u %zu %s", value, bytes, stream_name(stream));
    CHECK_STREAM(stream);
    if (!inside(to, bytes)) return INVALID;
    if (recorded(stream)) return 0;
    memset((void *)to, value, bytes);
    now += FILL_TIME;
    return 0;
}

/* ---- modules 'm' and their kernels: a cubin has them as sections, PTX as text ---- */

typedef struct { Kernel kernels[8]; char *image; size_t bytes; } Module;

static int loaded(void **module, const void *image)
{
    const Elf64_Ehdr *header = image;
    int elf = !memcmp(image, ELFMAG, SELFMAG);
    if (!elf && !strstr(image, ".target")) return BAD_IMAGE;
    size_t bytes = elf ? header->e_shoff + header->e_shnum * header->e_shentsize : strlen(image);
    Module *made = make_thing('m', sizeof(Module))->place;
    made->image = memcpy(calloc(1, bytes), image, bytes);
    made->bytes = bytes;
    *module = made;
    return 0;
}
int cuModuleLoadData(void **module, const void *image) { CALL("cuModuleLoadData"); return loaded(module, image); }
int cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options, void **values)
{
    for (unsigned i = 0; i < count; ++i)
        if (options[i] == 4 || options[i] == 6) values[i] = 0; /* the sizes of the logs */
    CALL("cuModuleLoadData");
    return loaded(module, image);
}
int cuModuleUnload(void *module)
{
    CALL("cuModuleUnload");
    if (thing_at('m', module)) free(((Module *)module)->image);
    return drop_thing('m', module);
}
int cuModuleGetFunction(void **function, void *module, const char *name)
{
    CALL("cuModuleGetFunction %s", name);
    if (!thing_at('m', module)) return BAD_HANDLE;
    Module *of = module;
    char section[80], entry[80];
    snprintf(section, sizeof section, ".text.%s", name);
    snprintf(entry, sizeof entry, ".entry %s(", name);
    if (!memmem(of->image, of->bytes, section, strlen(section) + 1)
        && !memmem(of->image, of->bytes, entry, strlen(entry)))
        return NOT_FOUND;
    for (int i = 0; i < 8; ++i) {
        Kernel *kernel = &of->kernels[i];
        if (kernel->module && strcmp(kernel->name, name)) continue;
        if (!kernel->module) kernel->allowed = 48 << 10;
        kernel->module = module;
        strncpy(kernel->name, name, sizeof kernel->name - 1);
        *function = kernel;
        return 0;
    }
    return MEMORY;
}
int cuFuncGetAttribute(int *value, int attribute, void *function)
{
    static const int VALUES[] = {512, 1024, 0, 0, 40, 90, 90}; /* threads, shared, ..., registers */
    CALL("cuFuncGetAttribute %d", attribute);
    if (attribute == 8) *value = ((Kernel *)function)->allowed;
    else if (attribute >= 0 && attribute < 7) *value = VALUES[attribute];
    else return INVALID;
    return 0;
}
int cuFuncSetAttribute(void *function, int attribute, int value)
{
    CALL("cuFuncSetAttribute %d %d", attribute, value);
    if (attribute != 8 || value + 1024 > 232448) return INVALID;
    ((Kernel *)function)->allowed = value;
    return 0;
}
static int planned(const char *name, const unsigned *grid, const unsigned *block,
                   const void *arguments, double *time)
{
    int (*plan)(const char *, const unsigned *, const unsigned *, const void *, double *);
    *time = KERNEL_TIME;
    if (!getenv("FAKE_CUDA_PLAN")) return 0;
    plan = dlsym(dlopen(getenv("FAKE_CUDA_PLAN"), RTLD_NOW), "fake_kernel");
    return plan(name, grid, block, arguments, time);
}
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **parameters, void **extra)
{
    Kernel *kernel = function;
    char hex[2048] = "";
    if (extra && extra[0] == (void *)1 && extra[2] == (void *)2 && !extra[4])
        for (size_t i = 0; i < *(size_t *)extra[3] && i < 1000; ++i)
            sprintf(hex + 2 * i, "%02x", ((unsigned char *)extra[1])[i]);
    char given[512] = "";
    for (size_t i = 0; extra && i < *(size_t *)extra[3] / 8; ++i) {
        uintptr_t place = ((uintptr_t *)extra[1])[i];
        Thing *memory = thing_around(place);
        size_t at = memory ? place - (uintptr_t)memory->place : 0;
        if (memory && at) sprintf(given + strlen(given), " d%d+%zu", memory->number, at);
        else if (memory) sprintf(given + strlen(given), " d%d:%zu", memory->number, memory->bytes);
    }
    if (!thing_at('m', kernel->module)) return BAD_HANDLE;
    CALL("cuLaunchKernel %s (%u,%u,%u) (%u,%u,%u) %u %s %s%s", kernel->name, gx, gy, gz, bx, by,
         bz, shared, stream_name(stream), hex, given);
    CHECK_STREAM(stream);
    if (parameters || bx * by * bz > 512 || (int)shared > kernel->allowed) return INVALID;
    unsigned grid[] = {gx, gy, gz}, block[] = {bx, by, bz};
    double time;
    if (recorded(stream)) {
        Graph *into = &((Stream *)stream)->origin->recorded;
        int status = planned(kernel->name, grid, block, NULL, &time);
        into->time += time;
        into->status = status ? status : into->status;
        int known = 0;
        while (known < into->modules && into->module[known] != kernel->module) ++known;
        if (known == 16) return MEMORY;
        if (known == into->modules) into->module[into->modules++] = kernel->module;
        if (!getenv("FAKE_CUDA_REPLAY")) return 0;
        Node *node = keep(stream);
        size_t bytes = extra ? *(size_t *)extra[3] : 0;
        if (!node || bytes > sizeof node->arguments) return MEMORY;
        node->kernel = kernel;
        memcpy(node->grid, grid, sizeof grid);
        memcpy(node->block, block, sizeof block);
        if (bytes) memcpy(node->arguments, extra[1], bytes);
        return 0;
    }
    int status = planned(kernel->name, grid, block, extra ? extra[1] : NULL, &time);
    now += time;
    return status_of_work(status);
}

/* ---- what was recorded is done ---- */

static int done_again(const Node *node)
{
    double time;
    if (node->kernel)
        return planned(node->kernel->name, node->grid, node->block, node->arguments, &time);
    memcpy((void *)node->to, (const void *)node->from, node->bytes);
    return 0;
}
/* The stream that goes ahead at this launch. */
static void *ahead(const Graph *all)
{
    void *streams[16] = {NULL};
    int count = 0;
    for (int n = 0; n < all->kept; ++n) {
        int known = 0;
        for (int i = 0; i < count; ++i) known |= streams[i] == all->node[n].stream;
        if (!known && count < 16) streams[count++] = all->node[n].stream;
    }
    return count ? streams[all->launches % count] : NULL;
}
int cuGraphLaunch(void *made, void *stream)
{
    CALL("cuGraphLaunch graph%d %s", number_of('x', made), stream_name(stream));
    if (!thing_at('x', made)) return BAD_HANDLE;
    Graph *all = made;
    for (int n = 0; n < all->modules; ++n)
        if (!thing_at('m', all->module[n])) return BAD_HANDLE;
    now += all->time;
    void *first = getenv("FAKE_CUDA_REPLAY") ? ahead(all) : NULL;
    int status = all->status;
    char done[MOST_NODES] = {0};
    for (int n = 0; first && n < all->kept; ++n)
        for (int i = 0; all->node[n].stream == first && i <= n; ++i)
            if (!done[i] && (i == n || has(&all->node[n].before, i))) {
                int found = done_again(&all->node[i]);
                status = found ? found : status;
                done[i] = 1;
            }
    for (int n = 0; n < all->kept; ++n)
        if (!done[n]) {
            int found = done_again(&all->node[n]);
            status = found ? found : status;
        }
    ++all->launches;
    return status_of_work(status);
}

/* ---- how NVRTC and cuda-bindings ask for more ---- */

int cuGetExportTable(const void **table, const void *identity)
{
    (void)identity;
    *table = NULL;
    return NOT_FOUND;
}

int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *found)
{
    static const char *const SUFFIXES[] = {"_v4", "_v3", "_v2", ""};
    char symbol[128];
    (void)version;
    (void)flags;
    *function = NULL;
    for (int i = 0; i < 4 && !*function; ++i) {
        snprintf(symbol, sizeof symbol, "%s%s", name, SUFFIXES[i]);
        *function = dlsym(RTLD_DEFAULT, symbol);
    }
    if (found) *found = *function ? 0 : 1;
    return *function ? 0 : NOT_FOUND;
}
