/* C11 threads.h: mutexes in crossing (buggy) or equal (fixed) order, condition, call_once, tss, join results. */
#include "t.h"
#include <threads.h>

static mtx_t a, b;
static cnd_t c;
static tss_t key;
static once_flag once = ONCE_FLAG_INIT;
static int fixed, made, started;

static void make(void)
{
    made++;
}

static int one(void *unused)
{
    (void)unused;
    call_once(&once, make);
    tss_set(key, &made);
    assert(mtx_lock(&a) == thrd_success);
    assert(mtx_lock(&b) == thrd_success);
    started = 1;
    assert(cnd_signal(&c) == thrd_success);
    assert(mtx_unlock(&b) == thrd_success);
    assert(mtx_unlock(&a) == thrd_success);
    return tss_get(key) == &made ? 11 : 0;
}

int main(int argc, char **argv)
{
    thrd_t t;
    int result = 0;

    fixed = arg_is(argc, argv, "fixed");
    assert(mtx_init(&a, mtx_plain) == thrd_success);
    assert(mtx_init(&b, mtx_plain) == thrd_success);
    assert(cnd_init(&c) == thrd_success);
    assert(tss_create(&key, NULL) == thrd_success);
    assert(thrd_create(&t, one, NULL) == thrd_success);
    call_once(&once, make);
    assert(mtx_lock(&b) == thrd_success);
    if (!fixed) {
        assert(mtx_lock(&a) == thrd_success);
        assert(mtx_unlock(&a) == thrd_success);
    }
    while (!started)
        assert(cnd_wait(&c, &b) == thrd_success);
    assert(mtx_unlock(&b) == thrd_success);
    assert(thrd_join(t, &result) == thrd_success);
    assert(result == 11 && made == 1);
    return 0;
}
