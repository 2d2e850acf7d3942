/* CUDA C as C++ on the CPU: what a kernel's source reads before itself.

   A block's threads are fibers of one thread of the system; blocks run one after the other. A
   function that waits (a barrier, a shuffle) switches to another fiber. `line` is where a call
   stands in the source. */

#define TW_UNCHECKED __attribute__((no_sanitize("thread"))) /* its accesses are not the kernel's */
#define TW_MEANING TW_UNCHECKED inline
#define TW_JOIN(a, b) a##b
#define TW_SHARED(line) TW_JOIN(em_shared_, line)

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __shared__ TW_SHARED(__LINE__) /* one definition per line that has the word */
#define __restrict__ __restrict

/* In checked mode a vector is aligned as on the device, and one that is not is reported before it
   is touched; otherwise none is, so that none faults. */
#ifdef TW_CHECKED
#define TW_ALIGNED(n) __align__(n)
#else
#define TW_ALIGNED(n)
#endif

/* Four elements, two elements: the types and what makes one, inlined: what is done with the result
   of a call is not looked at. */
#define TW_VECTORS(type, name) \
    struct TW_ALIGNED(2 * sizeof(type)) name##2 { type x, y; }; \
    struct TW_ALIGNED(sizeof(type) == 8 ? 16 : 4 * sizeof(type)) name##4 { type x, y, z, w; }; \
    __forceinline__ name##2 make_##name##2(type x, type y) { return {x, y}; } \
    __forceinline__ name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
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

struct em_index { unsigned x, y, z; };
extern "C" {
/* constant for the fiber that reads them */
extern const em_index threadIdx, blockIdx, blockDim, gridDim;
}
enum { warpSize = 32 };

/* Waiting, and memory that lands late. */
extern "C" {
void em_block_barrier(int line);
void em_warp_barrier(unsigned lanes, int line);
/* Wait for those of the lanes that the block has, or for a whole warp; the last one to come runs
   `finish` on what each lane brought, by lane, and on the lanes that came. A lane that left is
   waited for and reported, though the device would go on: it is named, and does not come. */
typedef void em_finish(void *const *, unsigned);
void em_warp(const char *what, unsigned lanes, void *brought, em_finish *finish, int line);
void em_whole_warp(const char *what, void *brought, em_finish *finish, int line);
int em_lane(void);
/* An access of one of the functions below. */
void em_touch(const void *address, int bytes, int action, int line);
void em_copy_async(void *shared, const void *global, int bytes, int line);
void em_copy_commit(void);
void em_copy_wait(int pending);
void em_refuse(const char *what, int line); /* stops the launch */
}
enum { TW_READ, TW_WRITE, TW_ATOMIC };

TW_MEANING void __syncthreads(int line = __builtin_LINE()) { em_block_barrier(line); }
TW_MEANING void __syncwarp(unsigned lanes = 0xffffffffu, int line = __builtin_LINE())
{
    em_warp_barrier(lanes, line);
}

/* Shuffles: each lane brings a value and where it reads; a lane that did not come has none. */
template <class T> struct em_shuffled { T value, got; int from; bool found; };
template <class T> TW_UNCHECKED void em_finish_shuffle(void *const *brought, unsigned lanes)
{
    for (int lane = 0; lane < 32; ++lane)
        if (lanes >> lane & 1) {
            auto *mine = (em_shuffled<T> *)brought[lane];
            mine->found = lanes >> mine->from & 1;
            if (mine->found)
                mine->got = ((em_shuffled<T> *)brought[mine->from])->value;
        }
}
template <class T>
TW_UNCHECKED T em_shuffle(const char *what, unsigned lanes, T value, int from, int line)
{
    em_shuffled<T> mine = {value, value, from & 31, true};
    em_warp(what, lanes, &mine, em_finish_shuffle<T>, line);
    if (!mine.found)
        em_refuse("it reads a lane that takes no part", line);
    return mine.got;
}
template <class T> TW_UNCHECKED T __shfl_sync(
    unsigned lanes, T value, int source, int width = 32, int line = __builtin_LINE())
{
    int from = (em_lane() & ~(width - 1)) | (source & (width - 1));
    return em_shuffle("__shfl_sync", lanes, value, from, line);
}
template <class T> TW_UNCHECKED T __shfl_xor_sync(
    unsigned lanes, T value, int mask, int width = 32, int line = __builtin_LINE())
{
    int lane = em_lane(), from = lane ^ mask;
    from = from > (lane | (width - 1)) ? lane : from;
    return em_shuffle("__shfl_xor_sync", lanes, value, from, line);
}
template <class T> TW_UNCHECKED T __shfl_down_sync(
    unsigned lanes, T value, unsigned delta, int width = 32, int line = __builtin_LINE())
{
    int lane = em_lane(), from = lane + (int)delta;
    from = from > (lane | (width - 1)) ? lane : from;
    return em_shuffle("__shfl_down_sync", lanes, value, from, line);
}
template <class T> TW_UNCHECKED T __shfl_up_sync(
    unsigned lanes, T value, unsigned delta, int width = 32, int line = __builtin_LINE())
{
    int lane = em_lane(), from = lane - (int)delta;
    from = from < (lane & ~(width - 1)) ? lane : from;
    return em_shuffle("__shfl_up_sync", lanes, value, from, line);
}

/* No fiber is interrupted, so a plain sum is an atomic one. */
template <class T> TW_UNCHECKED T atomicAdd(T *address, T value, int line = __builtin_LINE())
{
    em_touch(address, sizeof(T), TW_ATOMIC, line);
    T old = *address;
    *address = old + value;
    return old;
}

/* Matrices of a warp: ldmatrix's 8 by 8 elements of 16 bits, and the fragments of mma. */
struct em_rows { const void *row; unsigned got[4]; };
TW_MEANING void em_touch_row(const void *row, int line)
{
    if ((unsigned long)row % 16 != 0)
        em_refuse("the row of a matrix is not aligned to 16 bytes", line);
    em_touch(row, 16, TW_READ, line);
}
template <int COUNT, bool TRANSPOSED> TW_UNCHECKED void em_finish_rows(void *const *lanes, unsigned)
{
    for (int lane = 0; lane < 32; ++lane)
        for (int matrix = 0; matrix < COUNT; ++matrix) {
            unsigned packed = 0;
            for (int i = 0; i < 2; ++i) {
                int row = lane / 4, column = lane % 4 * 2 + i;
                if (TRANSPOSED)
                    row = column, column = lane / 4;
                auto *from = (const unsigned short *)((em_rows *)lanes[8 * matrix + row])->row;
                packed |= (unsigned)from[column] << 16 * i;
            }
            ((em_rows *)lanes[lane])->got[matrix] = packed;
        }
}
template <class Sum> struct em_fragments { Sum c[4]; unsigned a[4], b[2]; };
TW_MEANING int em_cut(long long sum) { return (int)sum; }
/* The float beside a number that is nearer to zero: tensor cores cut sums. */
TW_MEANING float em_cut(double sum)
{
    float near = (float)sum;
    if (near - near != 0 || __builtin_fabs((double)near) <= __builtin_fabs(sum))
        return near; /* no number, infinite, or there already */
    unsigned bits;
    __builtin_memcpy(&bits, &near, sizeof bits);
    bits -= 1;
    __builtin_memcpy(&near, &bits, sizeof bits);
    return near;
}
/* Register r of A holds PACKED elements of row l/4 + 8*(r%2), register r of B of column l/4; `read`
   gives element i of a register. Products and sums are exact or double, a float result is cut; what
   hardware cuts of each product before is not emulated. */
template <class Sum, class Wide, int PACKED, class Read>
TW_UNCHECKED void em_multiply(void *const *lanes, Read read)
{
    Wide a[16][8 * PACKED], b[8][8 * PACKED];
    for (int lane = 0; lane < 32; ++lane) {
        auto *mine = (const em_fragments<Sum> *)lanes[lane];
        for (int i = 0; i < PACKED; ++i) {
            int k = lane % 4 * PACKED + i;
            for (int r = 0; r < 4; ++r)
                a[lane / 4 + 8 * (r % 2)][k + r / 2 * 4 * PACKED] = read(mine->a[r], i);
            for (int r = 0; r < 2; ++r)
                b[lane / 4][k + r * 4 * PACKED] = read(mine->b[r], i);
        }
    }
    for (int lane = 0; lane < 32; ++lane)
        for (int i = 0; i < 4; ++i) {
            Sum *c = &((em_fragments<Sum> *)lanes[lane])->c[i];
            Wide sum = 0;
            for (int k = 0; k < 8 * PACKED; ++k)
                sum += a[lane / 4 + i / 2 * 8][k] * b[lane % 4 * 2 + i % 2][k];
            *c = em_cut(sum + (Wide)*c);
        }
}

/* Arithmetic. */
template <class To, class From> TW_MEANING To em_bits(From value)
{
    static_assert(sizeof(To) == sizeof(From), "of one size");
    To bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
}
TW_MEANING int __float_as_int(float x) { return em_bits<int>(x); }
TW_MEANING unsigned __float_as_uint(float x) { return em_bits<unsigned>(x); }
TW_MEANING float __int_as_float(int x) { return em_bits<float>(x); }
TW_MEANING float __uint_as_float(unsigned x) { return em_bits<float>(x); }
TW_MEANING long long __double_as_longlong(double x) { return em_bits<long long>(x); }
TW_MEANING double __longlong_as_double(long long x) { return em_bits<double>(x); }

/* Where one is NaN the other; -0 is below +0. */
template <class T> TW_MEANING T em_min(T a, T b)
{
    if (a != a) return b;
    if (b != b) return a;
    return a < b || (a == b && __builtin_signbit(a)) ? a : b;
}
template <class T> TW_MEANING T em_max(T a, T b)
{
    if (a != a) return b;
    if (b != b) return a;
    return a > b || (a == b && !__builtin_signbit(a)) ? a : b;
}
#define TW_FLOATING(type, f, F) \
    extern "C" { \
    type sqrt##f(type), floor##f(type), ceil##f(type), trunc##f(type), rint##f(type); \
    type fabs##f(type), copysign##f(type, type), fmod##f(type, type), fma##f(type, type, type); \
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
#define fminf em_min<float>
#define fmaxf em_max<float>
#define fmin em_min<double>
#define fmax em_max<double>
#define TW_INTEGER(type) \
    TW_MEANING type min(type a, type b) { return a < b ? a : b; } \
    TW_MEANING type max(type a, type b) { return a > b ? a : b; }
TW_INTEGER(int)
TW_INTEGER(unsigned)
TW_INTEGER(long long)
TW_INTEGER(unsigned long long)
extern "C" int abs(int);
extern "C" long long llabs(long long);

/* A launch: the arguments are pointers to their values, as the driver takes them. */
template <int... I> struct em_indices {};
template <int N, int... I> struct em_count : em_count<N - 1, N - 1, I...> {};
template <int... I> struct em_count<0, I...> { typedef em_indices<I...> type; };
template <class... P, int... I>
TW_UNCHECKED inline void em_spread(void (*kernel)(P...), void *const *arguments, em_indices<I...>)
{
    kernel(*(P *)arguments[I]...);
}
template <class... P> TW_UNCHECKED inline void em_call(void (*kernel)(P...), void *const *arguments)
{
    em_spread(kernel, arguments, typename em_count<sizeof...(P)>::type());
}
template <class T> struct em_letter { static const char value = '?'; };
template <class T> struct em_letter<T *> { static const char value = 'P'; };
template <> struct em_letter<signed char> { static const char value = 'b'; };
template <> struct em_letter<unsigned char> { static const char value = 'B'; };
template <> struct em_letter<short> { static const char value = 'h'; };
template <> struct em_letter<unsigned short> { static const char value = 'H'; };
template <> struct em_letter<int> { static const char value = 'i'; };
template <> struct em_letter<unsigned> { static const char value = 'I'; };
template <> struct em_letter<long long> { static const char value = 'q'; };
template <> struct em_letter<unsigned long long> { static const char value = 'Q'; };
template <> struct em_letter<float> { static const char value = 'f'; };
template <> struct em_letter<double> { static const char value = 'd'; };
template <class... P> struct em_letters { static const char text[sizeof...(P) + 1]; };
template <class... P> const char em_letters<P...>::text[] = {em_letter<P>::value..., 0};
template <class... P> TW_MEANING const char *em_types(void (*)(P...))
{
    return em_letters<P...>::text;
}

#define TW_EXPORT extern "C" __attribute__((visibility("default")))
#define TW_KERNEL(name) \
    TW_EXPORT TW_UNCHECKED void em_thread_##name(void *const *arguments) \
    { \
        em_call(&name, arguments); \
    } \
    TW_EXPORT const char *em_types_##name(void) { return em_types(&name); }
