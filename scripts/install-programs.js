// @ts-check

/** @typedef {import('./test-programs.js').TestProgram} TestProgram */

/** The option that forbids a test command to install programs. */
export const NO_INSTALL = '--no-install';

/** Thrown where a program is missing and must not be installed. */
export class MissingProgramsError extends Error {}

/**
 * Installs the programs that are missing, after it has printed which ones and by which commands. Returns those that are
 * still missing.
 *
 * @param {TestProgram[]} programs
 * @param {{ command: string, args: string[] }} run the command, such as `npm test`, and its arguments
 * @param {(text: string) => void} [print]
 * @returns {TestProgram[]}
 * @throws {MissingProgramsError} if a program is missing and the arguments have `--no-install`
 */
export function installPrograms(programs, { command, args }, print = console.error) {
  const missing = programs.filter((program) => !program.find());
  if (missing.length === 0) return [];
  if (args.includes(NO_INSTALL)) throw new MissingProgramsError(missingMessage(missing, command));
  const installable = missing.filter((program) => program.canInstall());
  if (installable.length === 0) return missing;
  print(installMessage(installable, command));
  for (const program of installable) install(program, print);
  return missing.filter((program) => !program.find());
}

/**
 * The arguments without `--no-install`, for vitest.
 * @param {string[]} args
 */
export function withoutNoInstall(args) {
  return args.filter((arg) => arg !== NO_INSTALL);
}

/**
 * What is missing and how to get it, one line each.
 * @param {TestProgram[]} programs
 */
export function waysToGet(programs) {
  return programs.flatMap(({ name, command, alternative }) => [
    `${name}: ${command}`,
    ...(alternative ? [`  or set ${alternative}`] : []),
  ]);
}

/** @param {TestProgram} program @param {(text: string) => void} print */
function install(program, print) {
  try {
    program.install();
  } catch (error) {
    print(`${program.name}: ${/** @type {Error} */ (error).message.split('\n')[0]}`);
  }
}

/** @param {TestProgram[]} missing @param {string} command */
function installMessage(missing, command) {
  return [
    `${command} installs programs that the tests need and that this machine does not have:`,
    ...missing.map((program) => `  ${program.name}: ${program.command}`),
    `To install nothing: ${command} -- ${NO_INSTALL}`,
  ].join('\n');
}

/** @param {TestProgram[]} missing @param {string} command */
function missingMessage(missing, command) {
  return [
    `${command} needs programs that this machine does not have, and ${NO_INSTALL} forbids to install them.`,
    'To get them:',
    ...waysToGet(missing).map((line) => `  ${line}`),
  ].join('\n');
}
