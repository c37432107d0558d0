import {
  chmodSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { runProgram } from './processes.js';
import { PROJECT } from './project-files.js';

const KIT = join(PROJECT, 'packages/conformance-kit');
const exampleFolder = (name: string): string => join(PROJECT, 'examples', name);

export interface Manifest {
  name: string;
  version: string;
  scripts: Record<string, string>;
  dependencies: Record<string, string>;
  devDependencies: Record<string, string>;
  peerDependencies: Record<string, string>;
  overrides: Record<string, string>;
  bin?: string | Record<string, string>;
}

export const manifestOf = (folder: string): Manifest => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
export const serviceManifest = manifestOf(PROJECT);
export const kitManifest = manifestOf(KIT);
export const exampleManifest = manifestOf(exampleFolder('boarding-pass'));

/** The name that npm gives the tarball of a package. */
export const tarballOf = ({ name, version }: Pick<Manifest, 'name' | 'version'>): string =>
  `${name.replace('@', '').replace('/', '-')}-${version}.tgz`;

/** The output and the exit code of a program. */
export interface ProcessResult {
  exitCode: number;
  output: string;
}

/** What an example has after it was built or tested. */
const NOT_COPIED = ['node_modules', 'dist', 'var', 'package-lock.json'];

/**
 * A folder with the packed service and the packed conformance kit in its node_modules, as npm would install them but
 * without a registry. Only the dependencies of the two and of the example are linked, to the modules of this project.
 */
export class PackedService {
  readonly folder = mkdtempSync(join(tmpdir(), 'packed-'));
  private readonly modules = join(this.folder, 'node_modules');
  /** Every file of the service's tarball. */
  files: string[] = [];

  /** @param example the folder of an example, which is copied into the folder */
  static async install(example?: string): Promise<PackedService> {
    const installed = new PackedService();
    const manifest = example === undefined ? exampleManifest : manifestOf(exampleFolder(example));
    if (example !== undefined) installed.copy(exampleFolder(example));
    installed.files = await installed.unpack(serviceManifest, PROJECT);
    await installed.unpack(kitManifest, await installed.builtKit());
    const dependencies = {
      ...serviceManifest.dependencies,
      ...kitManifest.dependencies,
      ...manifest.dependencies,
      ...manifest.devDependencies,
    };
    const own = [serviceManifest.name, kitManifest.name];
    for (const name of Object.keys(dependencies)) if (!own.includes(name)) installed.link(name);
    for (const name of [serviceManifest.name, ...Object.keys(manifest.devDependencies)]) installed.linkPrograms(name);
    return installed;
  }

  private copy(example: string): void {
    for (const part of readdirSync(example).filter((name) => !NOT_COPIED.includes(name)))
      cpSync(join(example, part), join(this.folder, part), { recursive: true });
  }

  /** The path of a file of the built example. */
  built(file: 'index.js'): `/${string}` {
    return `/${join(this.folder, 'dist', file).slice(1)}`;
  }

  /** The path of a program of the packed service. */
  program(file: 'main.js' | 'cli.js'): `/${string}` {
    return `/${join(this.modules, serviceManifest.name, 'dist', file).slice(1)}`;
  }

  /** Runs a command of npm in the folder, or in a folder below. */
  npm(parameters: string[], path = '.', more: NodeJS.ProcessEnv = {}): Promise<ProcessResult> {
    return run('npm', parameters, join(this.folder, path), more);
  }

  /** Runs a script with Node in the folder. */
  run(...parameters: string[]): Promise<ProcessResult> {
    return this.runIn('.', parameters);
  }

  /** Runs a script with Node in a folder below. */
  runIn(path: string, parameters: string[], more: NodeJS.ProcessEnv = {}): Promise<ProcessResult> {
    return run(process.execPath, parameters, join(this.folder, path), more);
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Packs a built package into node_modules, and returns the names of its files. */
  private async unpack({ name, version }: Manifest, source: string): Promise<string[]> {
    const pack = ['pack', '--ignore-scripts', '--json', '--pack-destination', this.folder];
    const { exitCode, output } = await run('npm', pack, source);
    if (exitCode !== 0) throw new Error(`npm pack: ${output}`);
    const packageFolder = join(this.modules, name);
    mkdirSync(packageFolder, { recursive: true });
    const tarball = tarballOf({ name, version });
    await run('tar', ['-xzf', tarball, '-C', packageFolder, '--strip-components=1'], this.folder);
    const listed = await run('tar', ['-tzf', tarball], this.folder);
    return listed.output
      .trim()
      .split('\n')
      .map((path) => path.replace(/^package\//, ''));
  }

  /** The kit, built into a folder of its own, because other tests may build it at the same time. */
  private async builtKit(): Promise<string> {
    const source = join(this.folder, 'conformance-kit');
    mkdirSync(source);
    copyFileSync(join(KIT, 'package.json'), join(source, 'package.json'));
    const tsc = join(PROJECT, 'node_modules/typescript/bin/tsc');
    const options = ['-p', join(KIT, 'tsconfig.build.json'), '--outDir', join(source, 'dist')];
    const { exitCode, output } = await run(process.execPath, [tsc, ...options], PROJECT);
    if (exitCode !== 0) throw new Error(`tsc: ${output}`);
    return source;
  }

  private link(name: string): void {
    const path = join(this.modules, name);
    mkdirSync(dirname(path), { recursive: true });
    symlinkSync(join(PROJECT, 'node_modules', name), path);
  }

  /** Links the programs of a package, as npm does. */
  private linkPrograms(name: string): void {
    const { bin = {} } = manifestOf(join(this.modules, name));
    const programs = typeof bin === 'string' ? { [name]: bin } : bin;
    mkdirSync(join(this.modules, '.bin'), { recursive: true });
    for (const [program, file] of Object.entries(programs)) {
      chmodSync(join(this.modules, name, file), 0o755);
      symlinkSync(join('..', name, file), join(this.modules, '.bin', program));
    }
  }
}

async function run(program: string, parameters: string[], cwd: string, more = {}): Promise<ProcessResult> {
  const env = { PATH: process.env.PATH, HOME: process.env.HOME, ...more };
  const { code, stdout, stderr } = await runProgram(program, parameters, { cwd, env });
  return { exitCode: code ?? -1, output: stdout + stderr };
}
