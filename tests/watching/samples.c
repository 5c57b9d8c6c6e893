/* Every form of operand, once and in the company of others: what is recorded of `cells` is compared with single-stepping. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* All data that is watched here: 64-byte rows. */
struct { unsigned char bytes[8192]; } cells __attribute__((aligned(4096)));
void *target_of_call, *target_of_jump;

#define FN(name, body) \
    long name(void *, long, long, long); \
    __asm__(".text\n.globl " #name "\n.type " #name ",@function\n" #name ":\n.cfi_startproc\n" body "\n.cfi_endproc\n.size " #name ",.-" #name "\n");

/* Sizes, addressing. rdi = row, rsi = index. */
FN(sizes, "mov al, [rdi]\n mov ax, [rdi+2]\n mov eax, [rdi+4]\n mov rax, [rdi+8]\n movups xmm0, [rdi+16]\n mov [rdi+33], al\n mov [rdi+34], ax\n"
          "mov [rdi+36], eax\n mov [rdi+40], rax\n movups [rdi+48], xmm0\n movzx ecx, byte ptr [rdi+3]\n movsx rcx, word ptr [rdi+7]\n"
          "movsxd rcx, dword ptr [rdi+1]\n mov rax, rcx\n ret")
FN(indexed, "mov rax, [rdi+rsi]\n add rax, [rdi+rsi*2+8]\n add eax, [rdi+rsi*4+16]\n add ax, [rdi+rsi*8+24]\n mov [rdi+rsi*8+32], rax\n lea rdx, [rdi+40]\n"
            "mov byte ptr [rdx+rsi], 3\n mov r12, r12\n push r12\n push r13\n mov r12, rdi\n mov r13, rsi\n mov cl, [r12]\n mov cx, [r13+r12+50]\n mov ecx, [r12+r13*4+52]\n pop r13\n pop r12\n ret")
FN(relative, "mov rax, [rip+cells+64]\n add dword ptr [rip+cells+72], 5\n cmp word ptr [rip+cells+80], 0\n mov byte ptr [rip+cells+90], 1\n ret")
FN(short_address, "mov eax, [edi]\n mov [edi+esi*4+8], ax\n lea ecx, [edi+16]\n add byte ptr [ecx], 7\n xor eax, eax\n ret")
/* Stack operands in memory, calls and jumps through memory. */
FN(stack_forms, "push qword ptr [rdi]\n pop qword ptr [rdi+8]\n push qword ptr [rdi+16]\n pop rax\n ret")
FN(callee, "mov rax, [rsp]\n mov [rdi+56], eax\n mov eax, 77\n ret")
FN(calls, "push rbx\n mov rbx, rdi\n call qword ptr [rdi+24]\n mov rdi, rbx\n lea rcx, [rdi+16]\n call qword ptr [rcx+rsi*8]\n add rax, 1\n pop rbx\n ret")
FN(jumps, "jmp qword ptr [rdi+24]\n ud2")
/* Locked and exchanging. */
FN(locked, "lock add dword ptr [rdi], 1\n lock xadd [rdi+8], rsi\n xchg [rdi+16], rdx\n mov eax, 5\n lock cmpxchg [rdi+24], ecx\n xchg cl, [rdi+29]\n"
           "push rbx\n mov rax, [rdi+32]\n mov rdx, [rdi+40]\n mov rbx, 1\n mov rcx, 2\n lock cmpxchg16b [rdi+32]\n lock cmpxchg8b [rdi+48]\n pop rbx\n lock inc byte ptr [rdi+60]\n ret")
/* Bits by register: beyond the operand, both ways. */
FN(bits, "bt dword ptr [rdi+32], 3\n bts [rdi+32], rsi\n neg rsi\n btr [rdi+32], esi\n btc [rdi+32], si\n mov ecx, 200\n bt [rdi+8], rcx\n lock bts [rdi+16], ecx\n setc al\n movzx eax, al\n ret")
/* String instructions: rdi = row, rsi = another row, rdx = count. */
FN(strings, "mov rcx, rdx\n rep movsb\n mov rcx, 3\n rep movsq\n mov eax, 0x41424344\n mov rcx, 4\n rep stosd\n lodsw\n lodsq\n movsd\n stosb\n xor ecx, ecx\n rep stosb\n rep movsb\n ret")
FN(backwards, "xor eax, eax\n std\n lea rdi, [rdi+56]\n lea rsi, [rsi+56]\n mov rcx, 3\n rep movsq\n mov rcx, 5\n rep stosw\n lodsb\n mov rcx, 4\n repe cmpsb\n cld\n ret")
FN(comparing, "push rdi\n push rsi\n mov rcx, 40\n repe cmpsb\n pop rsi\n pop rdi\n mov rax, rcx\n push rax\n mov rcx, 48\n mov al, 9\n repne scasb\n pop rax\n shl rax, 8\n add rax, rcx\n scasd\n cmpsw\n ret")
/* x87 and vectors. */
FN(floats, "fld tbyte ptr [rdi]\n fstp tbyte ptr [rdi+16]\n fld dword ptr [rdi+32]\n fstp qword ptr [rdi+40]\n fild word ptr [rdi+48]\n fistp dword ptr [rdi+52]\n"
           "fnstcw [rdi+56]\n fldcw [rdi+56]\n stmxcsr [rdi+60]\n ldmxcsr [rdi+60]\n xor eax, eax\n ret")
FN(vectors, "movaps xmm1, [rdi]\n movaps [rdi+16], xmm1\n movsd xmm2, [rdi+32]\n movss [rdi+40], xmm2\n movq [rdi+48], xmm2\n movlps xmm1, [rdi+8]\n movhps [rdi+56], xmm1\n"
            "paddd xmm1, [rdi]\n pextrw eax, xmm1, 2\n cvtsi2sd xmm3, dword ptr [rdi+4]\n movdqu xmm4, [rdi+1]\n movnti [rdi+20], eax\n ret")
FN(avx, "vmovups ymm0, [rdi]\n vmovups [rdi+64], ymm0\n vbroadcastss ymm1, [rdi+4]\n vpaddd ymm1, ymm0, [rdi+96]\n vextracti128 [rdi+128], ymm1, 1\n vmovntdq [rdi+160], ymm1\n vpmovzxbw ymm2, [rdi+3]\n vzeroupper\n ret")
FN(states, "fxsave [rdi]\n fnsave [rdi+512]\n frstor [rdi+512]\n fxrstor [rdi]\n ret")
/* What must be kept: red zone, flags, all registers, deep in a chain of short instructions. */
FN(red_zone, "mov [rsp-8], rdi\n mov [rsp-120], rsi\n inc byte ptr [rdi]\n mov al, [rdi+1]\n mov cl, [rdi+2]\n mov rdi, [rsp-8]\n mov rsi, [rsp-120]\n lea rax, [rdi+rsi]\n sub rax, rdi\n ret")
FN(flags, "xor eax, eax\n cmp rsi, rdx\n mov cl, [rdi]\n mov [rdi+9], cl\n jle 1f\n or eax, 1\n1: cmp rsi, rdx\n mov byte ptr [rdi+10], 0\n adc eax, 2\n mov r8, 0x7fffffffffffffff\n add r8, 1\n mov cl, [rdi+11]\n jno 2f\n or eax, 16\n"
          "2: mov rcx, -1\n add rcx, 1\n mov ecx, [rdi+12]\n rcl eax, 1\n test esi, esi\n mov cl, [rdi+13]\n setp cl\n setnz dl\n movzx ecx, cl\n movzx edx, dl\n lea eax, [rax+rcx*8]\n lea eax, [rax*2+rdx]\n ret")
FN(registers, "push rbx\n push rbp\n push r12\n push r13\n push r14\n push r15\n mov rbx, 1\n mov rbp, 2\n mov r8, 3\n mov r9, 4\n mov r10, 5\n mov r11, 6\n mov r12, 7\n mov r13, 8\n mov r14, 9\n mov r15, 10\n mov rax, 11\n mov rcx, 12\n stc\n"
              "inc byte ptr [rdi]\n mov dh, [rdi+1]\n mov [rdi+2], dl\n adc rax, rbx\n adc rax, rbp\n add rax, r8\n add rax, r9\n add rax, r10\n add rax, r11\n add rax, r12\n add rax, r13\n add rax, r14\n add rax, r15\n add rax, rcx\n add rax, rsi\n"
              "pop r15\n pop r14\n pop r13\n pop r12\n pop rbp\n pop rbx\n ret")
/* A loop to the very first byte of a short access, and one of two bytes at the end. */
FN(tight, "xor eax, eax\n1: add al, [rdi]\n inc rdi\n dec esi\n jnz 1b\n2: mov cl, [rdi]\n dec edx\n jnz 2b\n mov [rdi], al\n ret")

__attribute__((noinline)) long switched(int k, unsigned char *p) {
    switch (k) {
    case 0: return p[0]; case 1: p[1] = 2; return 4; case 2: return p[2] + p[3]; case 3: return p[4] * 3; case 4: p[5]++; return p[6];
    case 5: return p[7] - 1; case 6: p[8] ^= 3; return 1; case 7: return *(long *)(p + 16); default: return -1; }
}
__attribute__((noinline)) long interpreted(const unsigned char *code, long *p) {
    static void *const labels[] = { &&inc, &&dec, &&twice, &&end };
    goto *labels[*code++];
inc: *p += 1; goto *labels[*code++];
dec: *p -= 2; goto *labels[*code++];
twice: *p *= 2; p[1] = *p; goto *labels[*code++];
end: return *p;
}
static void *idle(void *p) { return p; }

#define ROW(n) (cells.bytes + 64 * (n))
int main(void) {
    pthread_t t;
    long sum = 0;
    for (int i = 0; i < (int)sizeof cells.bytes; i++) cells.bytes[i] = i * 7 + i / 64;
    pthread_create(&t, 0, idle, 0);
    *(volatile long *)ROW(127) = 1; /* the beginning */
    sum += sizes(ROW(2), 0, 0, 0) + indexed(ROW(4), 1, 0, 0) + relative(0, 0, 0, 0);
    if ((uintptr_t)ROW(0) < 1ul << 31) sum += short_address(ROW(6), 2, 0, 0);
    sum += stack_forms(ROW(8), 0, 0, 0);
    memcpy(ROW(9) + 24, &(void *){ (void *)callee }, 8);
    sum += calls(ROW(9), 1, 0, 0) + jumps(ROW(9), 0, 0, 0);
    sum += locked(ROW(10), 3, 4, 5) + bits(ROW(12), 70, 0, 0) * 3;
    sum += strings(ROW(14), (long)ROW(16), 13, 0) + backwards(ROW(18), (long)ROW(20), 0, 0);
    memset(ROW(22), 5, 128); ROW(22)[20] = 6; ROW(22)[30] = 9;
    sum += comparing(ROW(22), (long)ROW(23), 0, 0);
    sum += floats(ROW(26), 0, 0, 0) + vectors(ROW(28), 0, 0, 0);
    if (__builtin_cpu_supports("avx2")) avx(ROW(30), 0, 0, 0);
    states(ROW(48), 0, 0, 0);
    for (long a = -2; a < 3; a++) for (long b = -1; b < 2; b++) sum = sum * 3 + flags(ROW(34), a, b, 0) + red_zone(ROW(35), a, b, 0);
    sum += registers(ROW(36), 1000, 77, 0) + tight(ROW(38), 20, 3, 0);
    for (int k = -1; k < 9; k++) sum = sum * 5 + switched(k, ROW(40));
    sum += interpreted((const unsigned char *)"\0\1\2\0\2\1\3", (long *)ROW(42));
    *(volatile long *)ROW(126) = 2; /* the end */
    /* What the state of the processor holds is not the same everywhere. */
    memset(ROW(48), 0, 1024); memset(ROW(9), 0, 64); memset(ROW(26) + 56, 0, 8);
    for (int i = 0; i < (int)sizeof cells.bytes; i++) sum = sum * 31 + cells.bytes[i];
    pthread_join(t, 0);
    printf("%lx\n", sum);
    return 0;
}
