// Functions that --toss makes return a choice: names of C++, one that is too short for a jump beside one whose access is watched.
#include <cassert>
#include <csignal>
#include <cstring>
#include <thread>

namespace robot {
struct Arm {
    bool grips() const;
    static long reach(double far);
    static long reach(int far);
};
} // namespace robot

__attribute__((noinline)) bool robot::Arm::grips() const
{
    asm volatile("");
    return true;
}

__attribute__((noinline)) long robot::Arm::reach(double far)
{
    asm volatile("");
    return long(far);
}

__attribute__((noinline)) long robot::Arm::reach(int far)
{
    asm volatile("");
    return far;
}

extern "C" int tiny(void);
extern "C" int look(int *);
extern "C" int crowded(void);
asm(".text\n.balign 64\n"
    ".globl before\n.type before, @function\nbefore: .fill 127, 1, 0x90\nret\n.size before, .-before\n"
    ".globl tiny\n.type tiny, @function\ntiny: xorl %eax, %eax\nret\n.size tiny, .-tiny\n"
    ".globl look\n.type look, @function\nlook: nop\nmovl (%rdi), %eax\nret\n.size look, .-look\n"
    ".balign 16\n.globl end_of_room\n.type end_of_room, @function\nend_of_room: ret\n.size end_of_room, .-end_of_room\n"
    // A function without room, and none near.
    ".globl far_off\n.type far_off, @function\nfar_off: .fill 199, 1, 0x90\nret\n.size far_off, .-far_off\n"
    ".globl crowded\n.type crowded, @function\ncrowded: xorl %eax, %eax\nret\n.size crowded, .-crowded\n"
    ".globl beside\n.type beside, @function\nbeside: .fill 200, 1, 0x90\nret\n.size beside, .-beside\n");

int shared;
volatile int handled;

int main(int argc, char **argv)
{
    robot::Arm arm;
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "names")) {
        long sum = arm.grips() + 10 * arm.reach(3.5) + 100 * arm.reach(4);
        assert(sum != 221);
    }
    if (!strcmp(what, "race")) {
        // Natively tiny gives 0. Whether the other thread sees 1 is a matter of two accesses that nothing orders.
        int seen = 0;
        std::thread reader([&] { seen = look(&shared); });
        shared = 1 + tiny();
        reader.join();
        assert(seen != 2);
    }
    if (!strcmp(what, "trap")) {
        // The program has a handler for traps of its own.
        signal(SIGTRAP, [](int) { handled++; });
        int before = crowded();
        raise(SIGTRAP);
        assert(handled == 1);
        assert(before != 1);
        return 0;
    }
    return crowded();
}
