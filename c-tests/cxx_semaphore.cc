// std::counting_semaphore: two of them, taken in crossing (buggy) or equal (fixed) order.
#include <cstring>
#include <semaphore>
#include <thread>

static std::counting_semaphore<3> a(1), b(1);

static void both(std::counting_semaphore<3> &first, std::counting_semaphore<3> &second)
{
    first.acquire();
    std::this_thread::yield(); // uncontended, the semaphores make no call at all
    second.acquire();
    second.release();
    first.release();
}

int main(int argc, char **argv)
{
    const bool fixed = argc > 1 && !std::strcmp(argv[1], "fixed");
    std::thread other([=] {
        if (fixed)
            both(a, b);
        else
            both(b, a);
    });
    both(a, b);
    other.join();
}
