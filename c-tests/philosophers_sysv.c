/*
 * Dining philosophers without loops: one process a philosopher, one System V semaphore a fork.
 * Usage: philosophers_sysv [N]
 */
#include "t.h"

static int forks, seats;

static void dine(int seat)
{
    int left = seat, right = (seat + 1) % seats;

    sem_change(forks, left, -1);
    sem_change(forks, right, -1);
    sem_change(forks, left, +1);
    sem_change(forks, right, +1);
}

int main(int argc, char **argv)
{
    seats = argc > 1 ? atoi(argv[1]) : 2;
    if (seats < 2) {
        fprintf(stderr, "usage: %s [N]   (N >= 2)\n", argv[0]);
        return 2;
    }
    forks = new_sems(seats, 1);
    /* The first process takes the last seat, so that there are exactly N processes. */
    for (int seat = 0; seat < seats - 1; seat++) {
        if (fork() == 0) {
            dine(seat);
            _exit(0);
        }
    }
    dine(seats - 1);
    return 0;
}
