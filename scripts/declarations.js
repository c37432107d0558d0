// @ts-check
/** Emits the declarations of the build in memory, so that a check needs no build. */
import { dirname, join, relative } from 'node:path';
import ts from 'typescript';

const PROJECT = dirname(import.meta.dirname);
const SOURCES = join(PROJECT, 'src');
export const OUT = join(PROJECT, 'dist');

/**
 * A program over declarations alone, as another team's compiler reads them. Throws an error with the diagnostics.
 * @param {string[]} entries paths in dist/
 */
export function programOver(entries) {
  const emitted = emit(entries.map((entry) => entry.replace(OUT, SOURCES).replace(/\.d\.ts$/, '.ts')));
  const options = { ...compilerOptions(), skipLibCheck: false, noEmit: true, paths: {} };
  const host = ts.createCompilerHost(options);
  const { directoryExists, fileExists, readFile, getSourceFile } = host;
  host.directoryExists = (path) => path.startsWith(OUT) || (directoryExists?.(path) ?? true);
  host.fileExists = (path) => emitted.has(path) || (!path.startsWith(OUT) && fileExists(path));
  host.readFile = (path) => emitted.get(path) ?? readFile(path);
  host.getSourceFile = (path, target, ...more) => {
    const text = emitted.get(path);
    return text === undefined ? getSourceFile(path, target, ...more) : ts.createSourceFile(path, text, target, true);
  };
  const program = ts.createProgram(entries, options, host);
  for (const path of emitted.keys()) {
    const file = program.getSourceFile(path);
    if (file) assertNone(program.getSemanticDiagnostics(file));
  }
  return program;
}

/**
 * Emits the declarations of sources and of their imports, by their paths in dist/.
 * @param {string[]} sources
 */
function emit(sources) {
  /** @type {Map<string, string>} */
  const emitted = new Map();
  const options = { ...compilerOptions(), declaration: true, emitDeclarationOnly: true, sourceMap: false };
  const { diagnostics } = ts.createProgram(sources, options).emit(undefined, (path, text) => emitted.set(path, text));
  assertNone(diagnostics);
  return emitted;
}

function compilerOptions() {
  const { config } = ts.readConfigFile(join(PROJECT, 'tsconfig.build.json'), ts.sys.readFile);
  return ts.parseJsonConfigFileContent(config, ts.sys, PROJECT).options;
}

/** @param {readonly ts.Diagnostic[]} diagnostics */
function assertNone(diagnostics) {
  if (diagnostics.length === 0) return;
  const host = {
    getCurrentDirectory: () => PROJECT,
    getCanonicalFileName: (/** @type {string} */ path) => relative(PROJECT, path),
    getNewLine: () => '\n',
  };
  throw new Error(ts.formatDiagnostics(diagnostics, host));
}
