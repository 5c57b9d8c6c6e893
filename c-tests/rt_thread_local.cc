// thread_local objects: constructed once a thread, destroyed at its end, also in the main thread.
#include <atomic>
#include <cstdio>
#include <thread>

static std::atomic<int> made{0}, destroyed{0};

struct Local {
    int value = ++made;
    ~Local()
    {
        destroyed++;
    }
};

struct Last {
    ~Last()
    {
        std::printf("at exit: made %d, destroyed %d\n", made.load(), destroyed.load());
    }
};

static Last last;
static thread_local Local local;
static thread_local int plain = 5;

int main()
{
    int sum = 0;

    for (int i = 0; i < 4; i++) {
        std::thread t([&] {
            plain += local.value * 0 + i;
            sum += plain;
        });
        t.join();
    }
    std::printf("made %d, destroyed %d, sum %d, plain %d\n", made.load(), destroyed.load(), sum, plain);
    return local.value > 0 ? 0 : 1;
}
