// Threads that each throw an exception and catch it: what libgcc sets up for the first one is nothing to anybody.
#include <cassert>
#include <stdexcept>
#include <thread>
#include <vector>

int main()
{
    std::vector<std::thread> threads;
    for (int i = 0; i < 6; i++)
        threads.emplace_back([i] {
            try {
                throw std::runtime_error(i % 2 ? "odd" : "even");
            } catch (const std::runtime_error &e) {
                assert(e.what()[0] == (i % 2 ? 'o' : 'e'));
            }
        });
    for (auto &t : threads)
        t.join();
}
