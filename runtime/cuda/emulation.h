/* CUDA C as C++ on the CPU: what a kernel's source reads before itself.

   A block's threads are fibers of one thread of the system; blocks run one after the other. A
   function that waits (a barrier, a shuffle) switches to another fiber. `line` is where a call
   stands in the source. */

#define TW_UNCHECKED __attribute__((no_sanitize("thread"))) /* its accesses are not the kernel's */
#define TW_MEANING TW_UNCHECKED inline
#define TW_JOIN(a, b) a##b
#define TW_SHARED(line) TW_JOIN(tw_shared_, line)

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __shared__ TW_SHARED(__LINE__) /* one definition per line that has the word */
#define __restrict__ __restrict

/* In checked mode a vector is aligned as on the device, and one that is not is reported before it is
   touched; otherwise none is, so that none faults. */
#ifdef TW_CHECKED
#define TW_ALIGNED(n) __align__(n)
#else
#define TW_ALIGNED(n)
#endif

/* Four elements, two elements: the types and what makes one. */
#define TW_VECTORS(type, name) \
    struct TW_ALIGNED(2 * sizeof(type)) name##2 { type x, y; }; \
    struct TW_ALIGNED(sizeof(type) == 8 ? 16 : 4 * sizeof(type)) name##4 { type x, y, z, w; }; \
    TW_MEANING name##2 make_##name##2(type x, type y) { return {x, y}; } \
    TW_MEANING name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
TW_VECTORS(signed char, char)
TW_VECTORS(unsigned char, uchar)
TW_VECTORS(short, short)
TW_VECTORS(unsigned short, ushort)
TW_VECTORS(int, int)
TW_VECTORS(unsigned, uint)
TW_VECTORS(long long, longlong)
TW_VECTORS(unsigned long long, ulonglong)
TW_VECTORS(float, float)
TW_VECTORS(double, double)

struct tw_index { unsigned x, y, z; };
extern "C" {
/* constant for the fiber that reads them */
extern const tw_index threadIdx, blockIdx, blockDim, gridDim;
}
static const int warpSize = 32;

/* Waiting, and memory that lands late. */
extern "C" {
void tw_block_barrier(int line);
void tw_warp_barrier(unsigned lanes, int line);
/* Wait for the lanes; the last one to come runs `finish` on what each lane brought, by lane. */
void tw_warp(const char *what, unsigned lanes, void *brought, void (*finish)(void *const *, unsigned),
             int line);
int tw_lane(void);
void tw_touch(const void *address, int bytes, int kind, int line); /* an access of a function below */
void tw_copy_async(void *shared, const void *global, int bytes, int line);
void tw_copy_commit(void);
void tw_copy_wait(int pending, int line);
void tw_refuse(const char *what, int line); /* stops the launch */
}
enum { TW_READ, TW_WRITE, TW_ATOMIC };

TW_MEANING void __syncthreads(int line = __builtin_LINE()) { tw_block_barrier(line); }
TW_MEANING void __syncwarp(unsigned lanes = 0xffffffffu, int line = __builtin_LINE())
{
    tw_warp_barrier(lanes, line);
}

/* Shuffles: each lane brings a value and where it reads; a lane that is not among `lanes` has none. */
template <class T> struct tw_shuffled { T value, got; int from; bool found; };
template <class T> TW_UNCHECKED void tw_finish_shuffle(void *const *brought, unsigned lanes)
{
    for (int lane = 0; lane < 32; ++lane)
        if (lanes >> lane & 1) {
            auto *mine = (tw_shuffled<T> *)brought[lane];
            mine->found = lanes >> mine->from & 1;
            if (mine->found)
                mine->got = ((tw_shuffled<T> *)brought[mine->from])->value;
        }
}
template <class T> TW_UNCHECKED T tw_shuffle(const char *what, unsigned lanes, T value, int from, int line)
{
    tw_shuffled<T> mine = {value, value, from & 31, true};
    tw_warp(what, lanes, &mine, tw_finish_shuffle<T>, line);
    if (!mine.found)
        tw_refuse("it reads a lane that takes no part", line);
    return mine.got;
}
template <class T> TW_UNCHECKED T __shfl_sync(
    unsigned lanes, T value, int source, int width = 32, int line = __builtin_LINE())
{
    int from = (tw_lane() & ~(width - 1)) | (source & (width - 1));
    return tw_shuffle("__shfl_sync", lanes, value, from, line);
}
template <class T> TW_UNCHECKED T __shfl_xor_sync(
    unsigned lanes, T value, int mask, int width = 32, int line = __builtin_LINE())
{
    int lane = tw_lane(), from = lane ^ mask;
    from = from > (lane | (width - 1)) ? lane : from;
    return tw_shuffle("__shfl_xor_sync", lanes, value, from, line);
}
template <class T> TW_UNCHECKED T __shfl_down_sync(
    unsigned lanes, T value, unsigned delta, int width = 32, int line = __builtin_LINE())
{
    int lane = tw_lane(), from = lane + (int)delta;
    from = from > (lane | (width - 1)) ? lane : from;
    return tw_shuffle("__shfl_down_sync", lanes, value, from, line);
}
template <class T> TW_UNCHECKED T __shfl_up_sync(
    unsigned lanes, T value, unsigned delta, int width = 32, int line = __builtin_LINE())
{
    int lane = tw_lane(), from = lane - (int)delta;
    from = from < (lane & ~(width - 1)) ? lane : from;
    return tw_shuffle("__shfl_up_sync", lanes, value, from, line);
}

/* No fiber is interrupted, so a plain sum is an atomic one. */
template <class T> TW_UNCHECKED T atomicAdd(T *address, T value, int line = __builtin_LINE())
{
    tw_touch(address, sizeof(T), TW_ATOMIC, line);
    T old = *address;
    *address = old + value;
    return old;
}

/* Arithmetic. */
template <class To, class From> TW_MEANING To tw_bits(From value)
{
    static_assert(sizeof(To) == sizeof(From), "of one size");
    To bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
}
TW_MEANING int __float_as_int(float x) { return tw_bits<int>(x); }
TW_MEANING unsigned __float_as_uint(float x) { return tw_bits<unsigned>(x); }
TW_MEANING float __int_as_float(int x) { return tw_bits<float>(x); }
TW_MEANING float __uint_as_float(unsigned x) { return tw_bits<float>(x); }
TW_MEANING long long __double_as_longlong(double x) { return tw_bits<long long>(x); }
TW_MEANING double __longlong_as_double(long long x) { return tw_bits<double>(x); }

/* Where one is NaN the other; -0 is below +0. */
template <class T> TW_MEANING T tw_min(T a, T b)
{
    if (a != a) return b;
    if (b != b) return a;
    return a < b || (a == b && __builtin_signbit(a)) ? a : b;
}
template <class T> TW_MEANING T tw_max(T a, T b)
{
    if (a != a) return b;
    if (b != b) return a;
    return a > b || (a == b && !__builtin_signbit(a)) ? a : b;
}
#define TW_FLOATING(type, f, F) \
    extern "C" { \
    type sqrt##f(type), floor##f(type), ceil##f(type), trunc##f(type), rint##f(type), fabs##f(type); \
    type fma##f(type, type, type), copysign##f(type, type), fmod##f(type, type); \
    } \
    TW_MEANING type __##F##add_rn(type a, type b) { return a + b; } \
    TW_MEANING type __##F##sub_rn(type a, type b) { return a - b; } \
    TW_MEANING type __##F##mul_rn(type a, type b) { return a * b; } \
    TW_MEANING type __##F##div_rn(type a, type b) { return a / b; } \
    TW_MEANING type __##F##sqrt_rn(type a) { return __builtin_sqrt##f(a); } \
    TW_MEANING type __fma##f##_rn(type a, type b, type c) { return __builtin_fma##f(a, b, c); }
TW_FLOATING(float, f, f)
TW_FLOATING(double, , d)
#undef TW_FLOATING
#define fminf tw_min<float>
#define fmaxf tw_max<float>
#define fmin tw_min<double>
#define fmax tw_max<double>
#define TW_INTEGER(type) \
    TW_MEANING type min(type a, type b) { return a < b ? a : b; } \
    TW_MEANING type max(type a, type b) { return a > b ? a : b; }
TW_INTEGER(int)
TW_INTEGER(unsigned)
TW_INTEGER(long long)
TW_INTEGER(unsigned long long)

/* A launch: the arguments are pointers to their values, as the driver takes them. */
template <int... I> struct tw_indices {};
template <int N, int... I> struct tw_count : tw_count<N - 1, N - 1, I...> {};
template <int... I> struct tw_count<0, I...> { typedef tw_indices<I...> type; };
template <class... P, int... I>
TW_UNCHECKED inline void tw_spread(void (*kernel)(P...), void *const *arguments, tw_indices<I...>)
{
    kernel(*(P *)arguments[I]...);
}
template <class... P> TW_UNCHECKED inline void tw_call(void (*kernel)(P...), void *const *arguments)
{
    tw_spread(kernel, arguments, typename tw_count<sizeof...(P)>::type());
}
template <class T> struct tw_letter { static const char value = '?'; };
template <class T> struct tw_letter<T *> { static const char value = 'P'; };
template <> struct tw_letter<signed char> { static const char value = 'b'; };
template <> struct tw_letter<unsigned char> { static const char value = 'B'; };
template <> struct tw_letter<short> { static const char value = 'h'; };
template <> struct tw_letter<unsigned short> { static const char value = 'H'; };
template <> struct tw_letter<int> { static const char value = 'i'; };
template <> struct tw_letter<unsigned> { static const char value = 'I'; };
template <> struct tw_letter<long long> { static const char value = 'q'; };
template <> struct tw_letter<unsigned long long> { static const char value = 'Q'; };
template <> struct tw_letter<float> { static const char value = 'f'; };
template <> struct tw_letter<double> { static const char value = 'd'; };
template <class... P> struct tw_letters { static const char text[sizeof...(P) + 1]; };
template <class... P> const char tw_letters<P...>::text[] = {tw_letter<P>::value..., 0};
template <class... P> TW_MEANING const char *tw_types(void (*)(P...)) { return tw_letters<P...>::text; }

#define TW_EXPORT extern "C" __attribute__((visibility("default")))
#define TW_KERNEL(name) \
    TW_EXPORT TW_UNCHECKED void tw_thread_##name(void *const *arguments) \
    { \
        tw_call(&name, arguments); \
    } \
    TW_EXPORT const char *tw_types_##name(void) { return tw_types(&name); }
