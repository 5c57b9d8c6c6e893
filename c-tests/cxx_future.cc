// std::promise, std::future, std::async: two tasks; each waits for the other's value first (buggy), or only one does (fixed).
#include <cstdlib>
#include <cstring>
#include <future>

int main(int argc, char **argv)
{
    const bool fixed = argc > 1 && !std::strcmp(argv[1], "fixed");
    std::promise<int> one, two;
    std::future<int> first = one.get_future(), second = two.get_future();

    std::future<int> task = std::async(std::launch::async, [&] {
        if (fixed) {
            one.set_value(1);
            return second.get();
        }
        const int value = second.get();
        one.set_value(1);
        return value;
    });
    if (first.get() != 1)
        std::abort();
    two.set_value(2);
    if (task.get() != 2)
        std::abort();
}
