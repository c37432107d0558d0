import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { installPrograms, type Program } from '../../scripts/programs.js';
import { temporaryFolder } from '../support/project-files.js';

const folder = temporaryFolder('programs');

/** A program that its command installs. */
function missingProgram(name: string, command = 'touch'): Program {
  const path = join(folder, name);
  return { name, tests: 'all', command: `${command} ${path}`, find: () => existsSync(path) || undefined };
}

describe('a test command', () => {
  it('installs a missing program', () => {
    const program = missingProgram('installed');
    expect(installPrograms([program], [], true)).toEqual([]);
    expect(program.find()).toBe(true);
  });

  it('installs nothing with --no-install, and names the command', () => {
    const program = missingProgram('forbidden');
    expect(() => installPrograms([program], ['--no-install'], true)).toThrow(program.command);
    expect(program.find()).toBeUndefined();
  });

  it('continues without a program that this user cannot install', () => {
    const program = missingProgram('impossible');
    expect(installPrograms([program], [], false)).toEqual([program]);
    expect(program.find()).toBeUndefined();
  });

  it('continues without a program whose installation fails', () => {
    const program = missingProgram('failing', 'false');
    expect(installPrograms([program], [], true)).toEqual([program]);
  });
});
