/* Each thread copies its part, whole cache lines. */
static void tw_copy(void *target, const void *source, size_t bytes, int thread, int threads)
{
    const size_t part = (bytes / 64 / (size_t)threads + 1) * 64, first = part * (size_t)thread;
    if (first < bytes)
        memcpy((char *)target + first, (const char *)source + first,
               bytes - first < part ? bytes - first : part);
}

/* The whole model: every thread runs every launch, its share of each. */
void tw_model_looping(void *const *args, const struct tw_team *team, int thread, int threads)
{
    char *const scratch = args[7];
    (void)scratch, (void)team, (void)thread, (void)threads;
    tw_copy(args[5], args[2], 16, thread, threads);
    team->barrier(team->state, thread);
    const int64_t n7 = *(const int64_t *)(args[0]);
    for (int64_t i7 = 0; i7 < n7; i7++) {   /* loop */
        {   /* more */
            void *const given[] = {args[5], args[2], scratch + 0, scratch + 256};
            tw_model_looping_add(given, team, thread, threads);
        }
        team->barrier(team->state, thread);
        tw_copy(args[5], scratch + 0, 16, thread, threads);
        team->barrier(team->state, thread);
    }
    if (*(const uint8_t *)(args[1])) {   /* choice */
        {   /* twice */
            void *const given[] = {args[5], scratch + 64, scratch + 256};
            tw_model_looping_v_double(given, team, thread, threads);
        }
    } else {
        {   /* less */
            void *const given[] = {args[5], scratch + 64, scratch + 256};
            tw_model_looping_negate(given, team, thread, threads);
        }
    }
    team->barrier(team->state, thread);
    for (int64_t i8 = 0; i8 < 3; i8++) {   /* all */
        {   /* row */
            void *const given[] = {scratch + 64, (char *)args[3] + (2 - i8) * 16, (char *)args[6] + i8 * 16, scratch + 256};
            tw_model_looping_add(given, team, thread, threads);
        }
        team->barrier(team->state, thread);
    }
    tw_copy(scratch + 192, args[4], 1, thread, threads);
    team->barrier(team->state, thread);
    for (int64_t i9 = 0; i9 < 3 && *(const uint8_t *)(scratch + 192); i9++) {   /* some */
        if (thread == 0)
            *(int64_t *)(scratch + 128) = i9;
        team->barrier(team->state, thread);
        {   /* until */
            void *const given[] = {scratch + 128, scratch + 192, scratch + 256};
            tw_model_looping_below(given, team, thread, threads);
        }
        {   /* row */
            void *const given[] = {scratch + 64, (char *)args[3] + (2 - i9) * 16, (char *)args[6] + i9 * 16, scratch + 256};
            tw_model_looping_add(given, team, thread, threads);
        }
        team->barrier(team->state, thread);
    }
}
