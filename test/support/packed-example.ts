import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

const PROJECT = join(import.meta.dirname, '../..');
const exampleFolder = (name: string): string => join(PROJECT, 'examples', name);

export interface Manifest {
  name: string;
  version: string;
  scripts: Record<string, string>;
  dependencies: Record<string, string>;
  devDependencies: Record<string, string>;
  overrides: Record<string, string>;
}

export const manifestOf = (folder: string): Manifest => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
export const serviceManifest = manifestOf(PROJECT);
export const exampleManifest = manifestOf(exampleFolder('lotto-grant'));

/** The output and the exit code of a program. */
export interface ProcessResult {
  exitCode: number;
  output: string;
}

/**
 * A folder with the packed service in its node_modules, as npm would install it but without a registry. Only the
 * dependencies of the service and of the example are linked, to the modules of this project.
 */
export class PackedService {
  readonly folder = mkdtempSync(join(tmpdir(), 'packed-'));
  private readonly modules = join(this.folder, 'node_modules');
  /** Every file of the tarball. */
  files: string[] = [];

  static async install(): Promise<PackedService> {
    return PackedService.installInto(new PackedService());
  }

  protected static async installInto<Folder extends PackedService>(
    installed: Folder,
    manifest = exampleManifest,
  ): Promise<Folder> {
    await installed.unpackService();
    const { [serviceManifest.name]: _packed, ...others } = {
      ...serviceManifest.dependencies,
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

  private async unpackService(): Promise<void> {
    const pack = ['pack', '--ignore-scripts', '--json', '--pack-destination', this.folder];
    const { exitCode, output } = await run('npm', pack, PROJECT);
    if (exitCode !== 0) throw new Error(`npm pack: ${output}`);
    const packageFolder = join(this.modules, serviceManifest.name);
    mkdirSync(packageFolder, { recursive: true });
    const tarball = `${serviceManifest.name}-${serviceManifest.version}.tgz`;
    await run('tar', ['-xzf', tarball, '-C', packageFolder, '--strip-components=1'], this.folder);
    const listed = await run('tar', ['-tzf', tarball], this.folder);
    this.files = listed.output
      .trim()
      .split('\n')
      .map((path) => path.replace(/^package\//, ''));
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

  /** The path of one of the two programs of the built example. */
  built(file: 'main.js' | 'cli.js'): `/${string}` {
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
