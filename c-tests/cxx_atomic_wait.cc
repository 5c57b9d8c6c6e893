// std::atomic wait and notify; the buggy variant stores without notifying, which who waits already never sees.
#include <atomic>
#include <cstring>
#include <thread>

static std::atomic<int> stage{0};

int main(int argc, char **argv)
{
    const bool fixed = argc > 1 && !std::strcmp(argv[1], "fixed");
    std::thread waiter([] { stage.wait(0); });

    std::this_thread::yield();
    stage.store(1);
    if (fixed)
        stage.notify_all();
    waiter.join();
}
