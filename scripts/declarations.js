// @ts-check
/** Emits the declarations of the service and of the conformance kit in memory, so that a check needs no build. */
import { dirname, join, relative } from 'node:path';
import ts from 'typescript';

const PROJECT = dirname(import.meta.dirname);
/** The folder that the declarations seem to be in. A source has the same path below it as in the project. */
const OUT = join(PROJECT, 'declarations');

/** The declaration of a source. @param {string} source a path in the project */
export function declarationOf(source) {
  return join(OUT, source.replace(/\.ts$/, '.d.ts'));
}

/** Whether a path is that of a declaration of this project. @param {string} path */
export function isDeclaration(path) {
  return path.startsWith(OUT);
}

/**
 * A program over declarations alone, as another team's compiler reads them. Throws an error with the diagnostics.
 * @param {string[]} sources paths in the project
 */
export function programOver(sources) {
  const emitted = emit(sources.map((source) => join(PROJECT, source)));
  const paths = {
    'customer-authorization-service': [declarationOf('src/public/service.ts')],
    'customer-authorization-service/*': [declarationOf('src/public/*.ts')],
  };
  const options = { ...compilerOptions(), skipLibCheck: false, noEmit: true, paths };
  const host = ts.createCompilerHost(options);
  const { directoryExists, fileExists, readFile, getSourceFile } = host;
  host.directoryExists = (path) => path.startsWith(OUT) || (directoryExists?.(path) ?? true);
  host.fileExists = (path) => emitted.has(path) || (!path.startsWith(OUT) && fileExists(path));
  host.readFile = (path) => emitted.get(path) ?? readFile(path);
  host.getSourceFile = (path, target, ...more) => {
    const text = emitted.get(path);
    return text === undefined ? getSourceFile(path, target, ...more) : ts.createSourceFile(path, text, target, true);
  };
  const program = ts.createProgram(sources.map(declarationOf), options, host);
  for (const path of emitted.keys()) {
    const file = program.getSourceFile(path);
    if (file) assertNone(program.getSemanticDiagnostics(file));
  }
  return program;
}

/**
 * Emits the declarations of sources and of their imports.
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
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, PROJECT);
  return { ...options, rootDir: PROJECT, outDir: OUT };
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
