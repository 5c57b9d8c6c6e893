/*
 * robot_controller: control software of a small sorting cell, with its environment simulated.
 *
 *      conveyor belt --> drop robot --> rotary table --> collect robots A and B --> boxes
 *                                          |
 *                                          +--> chute for what nobody has asked for
 *
 * Six processes share one memory segment (struct cell) and one set of System V semaphores:
 *
 *   belt      (environment)  brings objects, one after the other, to the drop robot; it is the
 *                            first process, starts the others and waits for them at the end
 *   dropper   (robot)        takes an object from the belt and puts it on the table, at a place
 *                            that depends on how it was gripped (VS_toss)
 *   sensors   (environment)  light barriers: an edge tells that an object has arrived; the scan
 *                            marks what lies on the table as seen, then the robots are told
 *   table     (environment)  turns by one place for each object that is dropped; what comes to
 *                            lie before the chute without having been seen is swept into it
 *   picker A  (robots)       wait until the sensors announce an object, look for it on the
 *   picker B                 table, and collect it
 *
 * Rules that hold everywhere:
 *   - the table (struct table) is read and written only by the owner of SEM_TABLE;
 *   - a process writes its own log ring and its own struct station, nobody else's;
 *   - all waiting is done in cell_wait() and cell_enter(), never by polling.
 *
 * Environment variable ROBOT_LOG=1: print the logs at the end.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/sem.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../shim/include/vs.h"

/* ------------------------------------------------------------------ configuration */

#define PLACES 3     /* places on the rotary table, numbered from the drop position */
#define OBJECTS 2    /* objects that the belt brings before the shift ends */
#define CHUTE 2      /* the place before the chute */
#define LOG_LINES 16 /* a power of two */
#define LOG_WIDTH 56

enum station_id { ST_BELT, ST_DROPPER, ST_SENSORS, ST_TABLE, ST_PICKER_A, ST_PICKER_B, STATIONS };

enum cell_sem {
    SEM_TABLE, /* 1: the table is free to be used; 0: somebody uses it */
    SEM_BELT,  /* objects that lie at the end of the belt */
    SEM_PLACE, /* objects that may still be put on the table */
    SEM_EDGE,  /* edges of the light barrier that were not handled yet */
    SEM_TURN,  /* turns that the table still has to make */
    SEM_READY, /* objects that were announced to the pickers */
    SEMS
};

struct cell_config {
    const char *name;
    int initial[SEMS];
    int quota[STATIONS]; /* how many rounds a station works before its shift ends */
};

static const struct cell_config config = {
    "cell 4",
    /* TABLE BELT PLACE EDGE TURN READY */
    { 1, 0, 1, 0, 0, 0 },
    /* belt     dropper  sensors  table    A            B */
    { OBJECTS, OBJECTS, OBJECTS, OBJECTS, OBJECTS / 2, OBJECTS - OBJECTS / 2 },
};

/* ------------------------------------------------------------------ shared memory */

enum object_state { NO_OBJECT, UNSEEN, SEEN };

struct object {
    enum object_state state;
    int serial;
};

struct table {
    struct object slot[PLACES]; /* fixed to the plate, which turns: see table_slot() */
    int offset;                 /* by how many places the plate has turned */
    int last_arrival;           /* place at which the sensors saw the last arrival */
    int swept;
};

enum station_state { OFF, IDLE, WAITING, WORKING, FINISHED };

struct station {
    enum station_state state;
    int rounds;
    int objects; /* handled so far */
    unsigned log_next;
    char log[LOG_LINES][LOG_WIDTH];
};

struct cell {
    volatile struct table table;
    struct station station[STATIONS];
};

static struct cell *cell;
static int cell_sems = -1;
static enum station_id me = ST_BELT;

static const char *const station_name[STATIONS] = {
    "belt", "dropper", "sensors", "table", "picker A", "picker B",
};
static const char *const state_name[] = { "off", "idle", "waiting", "working", "finished" };

/* ------------------------------------------------------------------ log */

__attribute__((format(printf, 1, 2))) static void log_line(const char *format, ...)
{
    struct station *st = &cell->station[me];
    va_list args;

    va_start(args, format);
    vsnprintf(st->log[st->log_next++ & (LOG_LINES - 1)], LOG_WIDTH, format, args);
    va_end(args);
}

static void log_dump(void)
{
    for (int id = 0; id < STATIONS; id++) {
        const struct station *st = &cell->station[id];
        unsigned first = st->log_next > LOG_LINES ? st->log_next - LOG_LINES : 0;

        for (unsigned i = first; i < st->log_next; i++)
            printf("%-9s %s\n", station_name[id], st->log[i & (LOG_LINES - 1)]);
    }
}

static void fatal(const char *what)
{
    fprintf(stderr, "%s: %s: %s: %s\n", config.name, station_name[me], what, strerror(errno));
    _exit(2);
}

/* ------------------------------------------------------------------ semaphores */

/* A list of changes that the kernel makes all together or not at all. */
struct change {
    int n;
    struct sembuf op[4];
};

static void change_add(struct change *c, enum cell_sem which, int by)
{
    c->op[c->n].sem_num = (unsigned short)which;
    c->op[c->n].sem_op = (short)by;
    c->op[c->n].sem_flg = 0;
    c->n++;
}

static void change_make(struct change *c)
{
    while (semop(cell_sems, c->op, (size_t)c->n) != 0)
        if (errno != EINTR)
            fatal("semop");
}

static void cell_wait(enum cell_sem which)
{
    struct change c = { 0 };

    cell->station[me].state = WAITING;
    change_add(&c, which, -1);
    change_make(&c);
    cell->station[me].state = WORKING;
}

/* Waits for two resources at once, so that none is held while waiting for the other. */
static void cell_wait_both(enum cell_sem one, enum cell_sem other)
{
    struct change c = { 0 };

    cell->station[me].state = WAITING;
    change_add(&c, one, -1);
    change_add(&c, other, -1);
    change_make(&c);
    cell->station[me].state = WORKING;
}

static void cell_signal(enum cell_sem which)
{
    struct change c = { 0 };

    change_add(&c, which, +1);
    change_make(&c);
}

static void cell_enter(void)
{
    cell_wait(SEM_TABLE);
}

static void cell_leave(void)
{
    cell_signal(SEM_TABLE);
}

/* Leaves the table and tells somebody, in one step. */
static void cell_leave_and_signal(enum cell_sem which)
{
    struct change c = { 0 };

    change_add(&c, SEM_TABLE, +1);
    change_add(&c, which, +1);
    change_make(&c);
}

/* ------------------------------------------------------------------ the table (enter it first) */

/* The slot of the plate that is at a place now. */
static volatile struct object *table_slot(int place)
{
    int slot = (place - cell->table.offset) % PLACES;

    return &cell->table.slot[slot < 0 ? slot + PLACES : slot];
}

/* Puts an object down, at the place or the next free one. */
static int table_put(int place, int serial)
{
    for (int i = 0; i < PLACES; i++) {
        int here = (place + i) % PLACES;
        volatile struct object *o = table_slot(here);

        if (o->state == NO_OBJECT) {
            o->state = UNSEEN;
            o->serial = serial;
            return here;
        }
    }
    return -1;
}

static void table_turn(void)
{
    volatile struct object *o;

    cell->table.offset = (cell->table.offset + 1) % PLACES;
    o = table_slot(CHUTE);
    if (o->state == UNSEEN) { /* nobody will ever ask for it: do not let it jam the table */
        log_line("object %d swept into the chute", o->serial);
        o->state = NO_OBJECT;
        cell->table.swept++;
    }
}

static int table_scan(void)
{
    int arrived = 0;

    for (int place = 0; place < PLACES; place++) {
        volatile struct object *o = table_slot(place);

        if (o->state == UNSEEN) {
            o->state = SEEN;
            cell->table.last_arrival = place;
            arrived++;
        }
    }
    return arrived;
}

/* Takes the announced object that is next, seen from where the last one arrived. */
static int table_take(void)
{
    int place = cell->table.last_arrival;

    while (table_slot(place)->state != SEEN)
        place = (place + 1) % PLACES;
    table_slot(place)->state = NO_OBJECT;
    return table_slot(place)->serial;
}

/* ------------------------------------------------------------------ stations: one round each */

static void belt_round(struct station *st)
{
    log_line("object %d at the end of the belt", st->rounds);
    st->objects++;
    cell_signal(SEM_BELT);
}

static void dropper_round(struct station *st)
{
    struct change both = { 0 };
    int place, grip;

    cell_wait_both(SEM_BELT, SEM_PLACE);
    grip = VS_toss(PLACES - 1);
    cell_enter();
    place = table_put(grip, st->rounds);
    VS_assert(place >= 0);
    st->objects++;
    log_line("object %d dropped at place %d", st->rounds, place);
    cell_leave();
    change_add(&both, SEM_EDGE, +1);
    change_add(&both, SEM_TURN, +1);
    change_make(&both);
}

static void sensors_round(struct station *st)
{
    int arrived;

    cell_wait(SEM_EDGE);
    cell_enter();
    arrived = table_scan();
    st->objects += arrived;
    log_line("edge, %d arrived", arrived);
    cell_leave_and_signal(SEM_READY);
}

static void table_round(struct station *st)
{
    cell_wait(SEM_TURN);
    cell_enter();
    table_turn();
    st->objects = cell->table.swept;
    log_line("turned to %d", cell->table.offset);
    cell_leave();
}

static void picker_round(struct station *st)
{
    int serial;

    cell_wait(SEM_READY);
    cell_enter();
    serial = table_take();
    st->objects++;
    log_line("object %d collected", serial);
    cell_leave_and_signal(SEM_PLACE);
}

static void (*const station_round[STATIONS])(struct station *) = {
    belt_round, dropper_round, sensors_round, table_round, picker_round, picker_round,
};

static void station_run(enum station_id id)
{
    struct station *st = &cell->station[id];

    me = id;
    st->state = IDLE;
    for (st->rounds = 0; st->rounds < config.quota[id]; st->rounds++)
        station_round[id](st);
    st->state = FINISHED;
    log_line("shift ends after %d rounds", st->rounds);
}

/* ------------------------------------------------------------------ start and end of the cell */

static void cell_open(void)
{
    cell = mmap(NULL, sizeof *cell, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (cell == MAP_FAILED)
        fatal("mmap");
    cell_sems = semget(IPC_PRIVATE, SEMS, 0600);
    if (cell_sems < 0)
        fatal("semget");
    for (int i = 0; i < SEMS; i++)
        if (semctl(cell_sems, i, SETVAL, config.initial[i]) != 0)
            fatal("semctl SETVAL");
}

static pid_t station_start(enum station_id id)
{
    pid_t pid = fork();

    if (pid < 0)
        fatal("fork");
    if (pid == 0) {
        station_run(id);
        _exit(0);
    }
    return pid;
}

static int cell_report(void)
{
    int collected = cell->station[ST_PICKER_A].objects + cell->station[ST_PICKER_B].objects;

    printf("%s: %d dropped, %d seen, %d collected, %d swept\n", config.name,
           cell->station[ST_DROPPER].objects, cell->station[ST_SENSORS].objects, collected,
           cell->table.swept);
    for (int id = 0; id < STATIONS; id++)
        if (cell->station[id].state != FINISHED) {
            printf("%s is still %s\n", station_name[id], state_name[cell->station[id].state]);
            return 1;
        }
    return 0;
}

int main(void)
{
    pid_t pid[STATIONS] = { 0 };
    int status, failed = 0;

    cell_open();
    for (int id = ST_DROPPER; id < STATIONS; id++)
        pid[id] = station_start((enum station_id)id);
    station_run(ST_BELT);

    for (int id = STATIONS - 1; id > ST_BELT; id--) {
        if (waitpid(pid[id], &status, 0) != pid[id])
            fatal("waitpid");
        if (status != 0) {
            printf("%s ended with status %#x\n", station_name[id], (unsigned)status);
            failed = 1;
        }
    }
    semctl(cell_sems, 0, IPC_RMID);
    if (getenv("ROBOT_LOG"))
        log_dump();
    return cell_report() || failed;
}
