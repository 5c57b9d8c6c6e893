// std::shared_mutex: two of them, read and then written in crossing (buggy) or equal (fixed) order.
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <thread>

static std::shared_mutex a, b;

static void read_then_write(std::shared_mutex &read, std::shared_mutex &write)
{
    std::shared_lock<std::shared_mutex> r(read);
    std::unique_lock<std::shared_mutex> w(write);
}

int main(int argc, char **argv)
{
    const bool fixed = argc > 1 && !std::strcmp(argv[1], "fixed");
    std::thread other([=] {
        if (fixed)
            read_then_write(a, b);
        else
            read_then_write(b, a);
    });
    read_then_write(a, b);
    other.join();
}
