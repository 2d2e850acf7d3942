/* Fibers: stacks that a thread runs on, leaves in the middle of a function, and that another one goes on with.
 *
 * fiber_switch stores where the caller is in `*from` and goes on where `to` was stored, on its stack. What a
 * function may expect to find unchanged is kept on the stack that is left; the floating-point mode is the thread's.
 * A new context calls a function that never returns. Where TW_FIBERS is 0 there are none.
 */
#define _GNU_SOURCE
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>
#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(TW_NO_FIBERS)
#define TW_FIBERS 1
#else
#define TW_FIBERS 0
#endif

#if TW_FIBERS
enum { STACK_BYTES = 8 << 20 }; /* as a thread has; what is not used takes no memory */
void fiber_switch(void **from, void *to) __asm__("tw_fiber_switch");
void fiber_begin(void) __asm__("tw_fiber_begin");

#if defined(__APPLE__)
#define TEXT_SECTION ".text\n"
#define LAST_SECTION
#else
#define TEXT_SECTION ".pushsection .text\n"
#define LAST_SECTION ".popsection\n"
#endif

#if defined(__x86_64__)
enum { CALLED = 3, ARGUMENT = 4, RETURN = 6, FRAME = 9 }; /* r15 to r12, rbx, rbp, where it returns to */
__asm__(TEXT_SECTION
        ".p2align 4\n"
        "tw_fiber_switch:\n"
        "    push %rbp\n    push %rbx\n    push %r12\n    push %r13\n    push %r14\n    push %r15\n"
        "    mov %rsp, (%rdi)\n"
        "    mov %rsi, %rsp\n"
        "    pop %r15\n    pop %r14\n    pop %r13\n    pop %r12\n    pop %rbx\n    pop %rbp\n"
        "    ret\n"
        ".p2align 4\n"
        "tw_fiber_begin:\n"
        "    mov %rbx, %rdi\n"
        "    call *%r12\n"
        "    ud2\n"
        LAST_SECTION);
#else
enum { CALLED = 0, ARGUMENT = 1, RETURN = 11, FRAME = 20 }; /* x19 to x30, then d8 to d15 */
__asm__(TEXT_SECTION
        ".p2align 4\n"
        "tw_fiber_switch:\n"
        "    sub sp, sp, #160\n"
        "    stp x19, x20, [sp]\n    stp x21, x22, [sp, #16]\n    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n    stp x27, x28, [sp, #64]\n    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n    stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n    str x9, [x0]\n    mov sp, x1\n"
        "    ldp x19, x20, [sp]\n    ldp x21, x22, [sp, #16]\n    ldp x23, x24, [sp, #32]\n"
        "    ldp x25, x26, [sp, #48]\n    ldp x27, x28, [sp, #64]\n    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #160\n"
        "    ret\n"
        ".p2align 4\n"
        "tw_fiber_begin:\n"
        "    mov x0, x20\n"
        "    blr x19\n"
        "    brk #1\n"
        LAST_SECTION);
#endif

/* A stack with a page below it that nobody may touch; NULL where there is no memory. */
static char *new_stack(void)
{
    char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED)
        return NULL;
    mprotect(stack, (size_t)sysconf(_SC_PAGESIZE), PROT_NONE);
    return stack;
}

/* A context that calls a function with an argument, on a stack. */
static void *new_context(char *stack, void (*called)(void *), void *argument)
{
    void **frame = (void **)(void *)(stack + STACK_BYTES) - FRAME;
    for (int word = 0; word < FRAME; word++)
        frame[word] = NULL; /* a debugger finds the end of the stack there */
    frame[CALLED] = (void *)called;
    frame[ARGUMENT] = argument;
    frame[RETURN] = (void *)fiber_begin;
    return frame;
}
#endif
