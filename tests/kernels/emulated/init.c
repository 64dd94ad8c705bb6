/*
 * The first program of the emulated machine: runs the lines of /jobs one after the other and says
 * on the serial port how each ended. A line is a program and its arguments, separated by blanks.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { LINE_BYTES = 1000, WORDS = 60 };

static void mount_at(const char *type, const char *place) {
    mkdir(place, 0755);
    if (mount(type, place, type, 0, NULL) != 0) {
        perror(place);
    }
}

static void run(char *line) {
    char *words[WORDS + 1];
    int count = 0, status = 0;
    for (char *word = strtok(line, " "); word != NULL && count < WORDS; word = strtok(NULL, " ")) {
        words[count++] = word;
    }
    words[count] = NULL;
    pid_t child = fork();
    if (child == 0) {
        execv(words[0], words);
        perror(words[0]);
        _exit(127);
    }
    waitpid(child, &status, 0);
    printf("emulated: ended %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
}

int main(void) {
    char line[LINE_BYTES];
    mkdir("/tmp", 01777);
    mount_at("proc", "/proc");
    mount_at("sysfs", "/sys");
    mount_at("devtmpfs", "/dev");
    int serial = open("/dev/ttyS0", O_RDWR);
    for (int stream = 0; stream < 3; stream++) {
        dup2(serial, stream);
    }
    setenv("KERNELS", "/kernels", 1);
    setenv("HOME", "/tmp", 1);
    FILE *jobs = fopen("/jobs", "r");
    while (jobs != NULL && fgets(line, sizeof line, jobs) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        printf("emulated: runs %s\n", line);
        fflush(stdout); /* nothing waits in it when run() forks */
        run(line);
    }
    printf("emulated: all done\n");
    fflush(stdout);
    tcdrain(STDOUT_FILENO);
    reboot(RB_POWER_OFF);
    return 1;
}
