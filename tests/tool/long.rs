//! Searches of executions of thousands of transitions: what one execution costs the search beside running it. With the vsrun binary.

use super::back::{number, Place};

/// Two threads wait for what never comes, another one uses their mutex again and again, and main ends them.
const WAITS: &str = r"
#include <pthread.h>
#include <stdlib.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static int rounds;
static void *waits(void *unused) {
    pthread_mutex_lock(&lock);
    for (;;)
        pthread_cond_wait(&never, &lock);
    return unused;
}
static void *works(void *unused) {
    for (int round = 0; round < rounds; round++) {
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_lock(&other);
    pthread_mutex_unlock(&other);
    return unused;
}
int main(int argc, char **argv) {
    pthread_t thread[3];
    rounds = atoi(argv[argc - 1]);
    for (int n = 0; n < 3; n++)
        pthread_create(&thread[n], 0, n < 2 ? waits : works, 0);
    pthread_mutex_lock(&other);
    pthread_mutex_unlock(&other);
    pthread_join(thread[2], 0);
    exit(0);
}
";

/// What is blocked in the end raced with each of a thousand steps. A step was asked about with all selections of the later ones, and each time all steps
/// were asked: after 20 seconds there had been one execution.
#[test]
fn what_waits_in_the_end_does_not_hold_up_the_search() {
    let place = Place::new("long-waits");
    place.write("waits", WAITS);
    let run = place.run("auto", "--search optimal --race off --max-executions 60 --time 60 ./waits 500");
    assert!(number(&run, "executions") >= 59, "{run}");
    assert!(number(&run, "max_depth") > 1000, "{run}");
}

/// That it is asked less does not change what is explored.
#[test]
fn as_many_executions_as_when_all_steps_were_asked() {
    let place = Place::new("long-counts");
    place.write("waits", WAITS);
    for (rounds, executions, transitions) in [(0, 58, 184), (3, 154, 714), (10, 518, 4942)] {
        let run = place.run("auto", &format!("--search optimal --race off ./waits {rounds}"));
        assert_eq!(run["complete"], true, "{run}");
        assert_eq!((number(&run, "executions"), number(&run, "transitions")), (executions, transitions), "{run}");
    }
}
