import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import ts from 'typescript';
import { PROJECT } from '../support/project-files.js';

const SOURCES = join(PROJECT, 'examples/device-approval/src');
const MODULES = join(PROJECT, 'node_modules');
/** The packages that the example imports. The service is this project. */
const IMPORTED = ['@nestjs', 'class-validator', 'typeorm'];

const OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2023,
  module: ts.ModuleKind.ESNext,
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
  useDefineForClassFields: false,
};

/**
 * Builds the extension of examples/device-approval in a folder, without checks of types. Its proofs are rows of the
 * database, so that one process can redeem the proof of another one.
 *
 * @returns the path of its file for EXTENSION
 */
export function buildDeviceApproval(folder: string): string {
  const modules = join(folder, 'node_modules');
  mkdirSync(join(modules, '@customer-authorization'), { recursive: true });
  symlinkSync(PROJECT, join(modules, '@customer-authorization/service'));
  for (const name of IMPORTED) symlinkSync(join(MODULES, name), join(modules, name));
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module' }));
  for (const name of readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.ts')) continue;
    const { outputText } = ts.transpileModule(readFileSync(join(SOURCES, name), 'utf8'), { compilerOptions: OPTIONS });
    const file = join(folder, 'dist', name.replace('.ts', '.js'));
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, outputText);
  }
  return join(folder, 'dist/index.js');
}
