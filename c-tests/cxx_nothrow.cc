/*
 * operator new where memory may be short (--inject enomem).  cxx_nothrow VARIANT
 *   nothrow      new (std::nothrow), without a look at what it gives
 *   nothrow-ok   with one
 *   new          std::bad_alloc is not caught: the program is terminated
 *   new-ok       it is, and what had been made is destroyed
 */

#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

static int alive;
struct thing {
    thing() { alive++; }
    ~thing() { alive--; }
    volatile char room[100];
};

static void several()
{
    std::vector<thing> things(2);
    std::string text(100, 'x');
    if (text.size() != 100)
        std::abort();
}

int main(int argc, char **argv)
{
    std::string variant = argc > 1 ? argv[1] : "";
    if (variant.rfind("nothrow", 0) == 0) {
        thing *one = new (std::nothrow) thing;
        if (one || variant == "nothrow")
            one->room[0] = 1;
        delete one;
    } else if (variant == "new")
        several();
    else if (variant == "new-ok") {
        try {
            several();
        } catch (const std::bad_alloc &) {
        }
    } else
        return 2;
    return alive;
}
