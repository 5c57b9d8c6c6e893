// What C++20 has for threads, with exceptions that cross them. Prints the same in every interleaving; exits with 7.
#include <atomic>
#include <barrier>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <future>
#include <latch>
#include <map>
#include <memory>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

struct Broken : std::runtime_error {
    explicit Broken(int at) : std::runtime_error("broken at " + std::to_string(at)) {}
};

// Destructors run while the exception passes.
struct Guard {
    std::atomic<int> &left;
    ~Guard() { ++left; }
};

int work(int n)
{
    if (n % 3 == 2)
        throw Broken(n);
    return n * n;
}

void futures()
{
    std::vector<std::future<int>> results;
    for (int i = 0; i < 6; i++)
        results.push_back(std::async(std::launch::async, work, i));
    for (auto &result : results) {
        try {
            std::printf("future %d\n", result.get());
        } catch (const Broken &e) {
            std::printf("future %s\n", e.what());
        }
    }
    std::promise<std::string> promise;
    auto told = promise.get_future().share();
    std::thread teller([&] { promise.set_value("a promise kept"); });
    std::thread reader([told] { told.wait(); });
    std::printf("%s\n", told.get().c_str());
    teller.join();
    reader.join();
}

void exceptions()
{
    std::atomic<int> left = 0;
    std::exception_ptr caught[4];
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([&, i] {
            try {
                Guard outer{left};
                Guard inner{left};
                work(3 * i + 2);
            } catch (...) {
                caught[i] = std::current_exception();
            }
        });
    for (auto &thread : threads)
        thread.join();
    for (auto &pointer : caught) {
        try {
            std::rethrow_exception(pointer);
        } catch (const std::runtime_error &e) {
            std::printf("thread %s\n", e.what());
        }
    }
    std::printf("%d guards left\n", left.load());
}

void semaphores()
{
    std::counting_semaphore<2> places(2);
    std::binary_semaphore done(0);
    std::atomic<int> inside = 0, most = 0;
    std::latch over(5);
    std::vector<std::jthread> threads;
    for (int i = 0; i < 5; i++)
        threads.emplace_back([&] {
            places.acquire();
            int now = ++inside;
            for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {}
            --inside;
            places.release();
            over.count_down();
        });
    std::thread last([&] {
        over.wait();
        done.release();
    });
    done.acquire();
    last.join();
    std::printf("at most two inside: %s\n", most <= 2 ? "yes" : "no");
}

void barriers()
{
    int sum = 0, parts[3] = {};
    auto add = [&]() noexcept { sum += parts[0] + parts[1] + parts[2]; };
    std::barrier phase(3, add);
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++)
        threads.emplace_back([&, i] {
            for (int round = 1; round <= 4; round++) {
                parts[i] = i * round;
                phase.arrive_and_wait();
            }
        });
    for (auto &thread : threads)
        thread.join();
    std::printf("barrier sum %d\n", sum);
}

void atomics()
{
    std::atomic<int> step = 0;
    std::thread other([&] {
        for (int i = 0; i < 10; i++) {
            step.wait(2 * i);
            step = 2 * i + 2;
            step.notify_one();
        }
    });
    for (int i = 0; i < 10; i++) {
        step = 2 * i + 1;
        step.notify_one();
        step.wait(2 * i + 1);
    }
    other.join();
    std::printf("atomic step %d\n", step.load());
}

void tables()
{
    std::shared_mutex lock;
    std::map<int, int> table;
    std::condition_variable_any filled;
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; i++)
        threads.emplace_back([&, i] {
            std::unique_lock own(lock);
            table[i] = i + 10;
            filled.notify_all();
        });
    for (int i = 0; i < 2; i++)
        threads.emplace_back([&] {
            std::shared_lock shared(lock);
            filled.wait(shared, [&] { return table.size() == 3; });
        });
    threads.clear();
    for (auto &[key, value] : table)
        std::printf("table %d %d\n", key, value);
}

thread_local std::unique_ptr<std::string> name;
std::once_flag once;

void locals()
{
    std::atomic<int> first = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++)
        threads.emplace_back([&, i] {
            name = std::make_unique<std::string>("thread " + std::to_string(i));
            std::call_once(once, [&] { ++first; });
        });
    for (auto &thread : threads)
        thread.join();
    std::printf("called once: %d, name %s\n", first.load(), name ? "set" : "not set");
}

} // namespace

int main()
{
    futures();
    exceptions();
    semaphores();
    barriers();
    atomics();
    tables();
    locals();
    return 7;
}
