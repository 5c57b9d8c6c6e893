// Exceptions inside threads, through futures and exception_ptr, and rethrown elsewhere.
#include <cstdio>
#include <exception>
#include <future>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static std::mutex m;
static int unwound;

struct Guard {
    ~Guard()
    {
        std::lock_guard<std::mutex> lock(m);
        unwound++;
    }
};

static void deep(int n)
{
    Guard guard;
    if (n == 0)
        throw std::runtime_error("bottom");
    deep(n - 1);
}

int main()
{
    std::vector<std::jthread> threads;
    std::vector<std::string> seen(3);
    std::exception_ptr kept;

    for (int i = 0; i < 3; i++)
        threads.emplace_back([&, i] {
            try {
                deep(i);
            } catch (const std::runtime_error &e) {
                seen[i] = e.what();
                if (i == 2)
                    kept = std::current_exception();
            }
        });
    threads.clear();

    auto task = std::async(std::launch::async, [] {
        deep(1);
        return 1;
    });
    try {
        task.get();
        std::puts("no exception");
    } catch (const std::exception &e) {
        std::printf("future: %s\n", e.what());
    }
    try {
        std::rethrow_exception(kept);
    } catch (const std::exception &e) {
        std::printf("kept: %s\n", e.what());
    }
    for (const auto &s : seen)
        std::printf("thread: %s\n", s.c_str());
    std::printf("unwound %d\n", unwound);
}
