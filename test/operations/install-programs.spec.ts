import { describe, expect, it } from 'vitest';
import { installPrograms } from '../../scripts/install-programs.js';
import type { TestProgram } from '../../scripts/test-programs.js';

const COMMAND = 'apt-get update && apt-get install -y --no-install-recommends browser-package';

/** A program that exists after it was installed. */
function missingProgram(more: Partial<TestProgram> = {}) {
  const program: TestProgram & { isInstalled: boolean } = {
    isInstalled: false,
    name: 'Browser',
    command: COMMAND,
    alternative: 'TEST_BROWSER=/path/to/browser',
    find: () => (program.isInstalled ? '/usr/bin/browser' : undefined),
    canInstall: () => true,
    install: () => {
      program.isInstalled = true;
    },
    ...more,
  };
  return program;
}

function run(program: TestProgram, ...args: string[]) {
  const printed: string[] = [];
  const missing = installPrograms([program], { command: 'npm test', args }, (text) => printed.push(text));
  return { missing, printed };
}

describe('a test command', () => {
  it('prints the packages and the command before it installs a missing program', () => {
    const program = missingProgram();
    const printed: string[] = [];
    const print = (text: string) => {
      expect(program.isInstalled).toBe(false);
      printed.push(text);
    };
    expect(installPrograms([program], { command: 'npm test', args: [] }, print)).toEqual([]);
    expect(program.isInstalled).toBe(true);
    expect(printed).toEqual([
      'npm test installs programs that the tests need and that this machine does not have:\n' +
        `  Browser: ${COMMAND}\n` +
        'To install nothing: npm test -- --no-install',
    ]);
  });

  it.each([[], ['--no-install']])('prints nothing if all programs are installed (arguments: %s)', (...args) => {
    expect(run(missingProgram({ find: () => '/usr/bin/browser' }), ...args)).toEqual({ missing: [], printed: [] });
  });

  it('continues without a program that this user cannot install', () => {
    const program = missingProgram({ canInstall: () => false });
    expect(run(program)).toEqual({ missing: [program], printed: [] });
    expect(program.isInstalled).toBe(false);
  });

  it('continues without a program whose installation fails', () => {
    const install = () => {
      throw new Error('no such mirror');
    };
    const program = missingProgram({ install });
    const { missing, printed } = run(program);
    expect(missing).toEqual([program]);
    expect(printed.at(-1)).toBe('Browser: no such mirror');
  });
});
