import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findFaketime } from '../../scripts/programs.js';

/** A clock for processes, which libfaketime reads from a file. Their monotonic clock stays that of the machine. */
export class SettableClock {
  private readonly file: string;

  constructor(folder: string) {
    this.file = join(folder, 'clock');
    this.set(0);
  }

  /** The environment of a process that has this clock. */
  get environment(): Record<string, string> {
    return {
      LD_PRELOAD: findFaketime() ?? '',
      FAKETIME_TIMESTAMP_FILE: this.file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    };
  }

  /** Sets the clock to this many seconds after the clock of the machine; a negative number is before it. */
  set(seconds: number): void {
    writeFileSync(this.file, `${seconds >= 0 ? '+' : ''}${seconds}\n`);
  }
}
