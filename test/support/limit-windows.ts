import type { TestService } from './test-service.js';

const HOUR_SECONDS = 3_600;

/** Moves the clock to the start of an hour, so that no window of a limit ends during a test. */
export function beginWindow({ clock }: TestService): void {
  clock.advance({ seconds: HOUR_SECONDS - (clock.seconds() % HOUR_SECONDS) });
}
