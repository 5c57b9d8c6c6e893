/* Operations of the driver on memory that its strands use without an order: plain, in part, and by atomic instructions. Cells 0 and 1 are shared
 * by all processes, 2 and 3 by the threads of one. Included by driver.c. */

static volatile long own_cell[N];
static volatile long *cell(long a) { return a < 2 ? &w->cell[a] : &own_cell[a]; }

OP(do_cellload) { UNUSED; return *cell(a); }
OP(do_cellstore) { UNUSED; *cell(a) = b; return 0; }
/* A load, and a store behind it. */
OP(do_celladd) { UNUSED; long x = *cell(a); *cell(a) = x + 1; return x; }
/* One instruction, and not an atomic one. */
OP(do_cellinc) { UNUSED; __asm__ volatile("incq %0" : "+m"(*cell(a)) : : "cc"); return 0; }
OP(do_cellxadd) { UNUSED; return __atomic_fetch_add(cell(a), 1, __ATOMIC_SEQ_CST); }
OP(do_cellxchg) { UNUSED; return __atomic_exchange_n(cell(a), b, __ATOMIC_SEQ_CST); }
OP(do_cellcas) {
    UNUSED;
    long found = b;
    __atomic_compare_exchange_n(cell(a), &found, c, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return found;
}
OP(do_cellbyte) { UNUSED; ((volatile char *)cell(a))[1] = b; return 0; }
OP(do_cellhalf) { UNUSED; return *(volatile int *)cell(a); }
OP(do_cellfence) { UNUSED; __atomic_thread_fence(__ATOMIC_SEQ_CST); return 0; }
/* How many rounds it has waited, three at most. */
OP(do_cellpoll) { UNUSED; int n = 0; while (n < 3 && !*cell(a)) n++; return n; }
