// A thread waits for a future for a while; the promise is given up, with no value, while the thread begins. What gives it up is atomic instructions
// alone. With "fixed" the wait has no limit.
#include <cassert>
#include <chrono>
#include <cstring>
#include <future>
#include <thread>
#include <utility>

int main(int argc, char **argv)
{
    using namespace std::chrono_literals;
    const bool fixed = argc > 1 && std::strcmp(argv[1], "fixed") == 0;
    std::promise<int> given;
    const std::shared_future<int> future = given.get_future().share();
    bool ready = false;
    std::thread waits([&ready, future, fixed] {
        if (fixed) {
            future.wait();
            ready = true;
        } else {
            ready = future.wait_for(100us) == std::future_status::ready;
        }
    });
    {
        std::promise<int> dropped = std::move(given);
    }
    waits.join();
    assert(ready);
    return 0;
}
