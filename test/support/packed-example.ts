import { execFile } from 'node:child_process';
import { copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

const PROJECT = join(import.meta.dirname, '../..');
const KIT = join(PROJECT, 'packages/conformance-kit');
const TRY_IT = join(PROJECT, 'packages/try-it');
const exampleFolder = (name: string): string => join(PROJECT, 'examples', name);

export interface Manifest {
  name: string;
  version: string;
  scripts: Record<string, string>;
  dependencies: Record<string, string>;
  devDependencies: Record<string, string>;
  peerDependencies: Record<string, string>;
  overrides: Record<string, string>;
}

export const manifestOf = (folder: string): Manifest => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
export const serviceManifest = manifestOf(PROJECT);
export const kitManifest = manifestOf(KIT);
const tryItManifest = manifestOf(TRY_IT);
export const exampleManifest = manifestOf(exampleFolder('lotto-grant'));

/** The output and the exit code of a program. */
export interface ProcessResult {
  exitCode: number;
  output: string;
}

/**
 * A folder with the packed service and the packed conformance kit in its node_modules, as npm would install them but
 * without a registry. Only the dependencies of the two and of the example are linked, to the modules of this project.
 */
export class PackedService {
  readonly folder = mkdtempSync(join(tmpdir(), 'packed-'));
  private readonly modules = join(this.folder, 'node_modules');
  /** Every file of the service's tarball. */
  files: string[] = [];

  static async install(): Promise<PackedService> {
    return PackedService.installInto(new PackedService());
  }

  protected static async installInto<Folder extends PackedService>(
    installed: Folder,
    manifest = exampleManifest,
  ): Promise<Folder> {
    installed.files = await installed.unpack(serviceManifest, PROJECT);
    await installed.unpack(kitManifest, await installed.builtKit());
    const usesTryIt = manifest.devDependencies[tryItManifest.name] !== undefined;
    if (usesTryIt) await installed.unpack(tryItManifest, TRY_IT);
    const {
      [serviceManifest.name]: _service,
      [kitManifest.name]: _kit,
      [tryItManifest.name]: _tryIt,
      ...others
    } = {
      ...serviceManifest.dependencies,
      ...kitManifest.dependencies,
      ...(usesTryIt && tryItManifest.dependencies),
      ...manifest.dependencies,
      ...manifest.devDependencies,
    };
    for (const name of Object.keys(others)) installed.link(name);
    return installed;
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
    const tarball = `${name}-${version}.tgz`;
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
}

const PARTS = ['package.json', 'tsconfig.json', 'tsconfig.build.json', 'registry.yaml', 'src', 'test', 'pages'];

/** The example, with the packed service in its own folder. */
export class PackedExample extends PackedService {
  /** @param name the folder of the example */
  static override async install(name = 'lotto-grant'): Promise<PackedExample> {
    const example = new PackedExample();
    const folder = exampleFolder(name);
    for (const part of PARTS.filter((each) => existsSync(join(folder, each)))) {
      cpSync(join(folder, part), join(example.folder, part), { recursive: true });
    }
    return PackedService.installInto(example, manifestOf(folder));
  }

  /** The path of one of the programs of the built example. */
  built(file: 'main.js' | 'cli.js' | 'try-it.js'): `/${string}` {
    return `/${join(this.folder, 'dist', file).slice(1)}`;
  }
}

function run(program: string, parameters: string[], cwd: string, more: NodeJS.ProcessEnv = {}): Promise<ProcessResult> {
  const env = { PATH: process.env.PATH, HOME: process.env.HOME, ...more };
  return new Promise((resolve) => {
    const child = execFile(program, parameters, { cwd, env, maxBuffer: 1 << 24 }, (_error, stdout, stderr) =>
      resolve({ exitCode: child.exitCode ?? -1, output: stdout + stderr }),
    );
  });
}
