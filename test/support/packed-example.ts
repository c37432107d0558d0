import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

const PROJECT = join(import.meta.dirname, '../..');
const EXAMPLE = join(PROJECT, 'examples/lotto-grant');

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
export const exampleManifest = manifestOf(EXAMPLE);

/** The output and the exit code of a program. */
export interface ProcessResult {
  exitCode: number;
  output: string;
}

/**
 * The example, installed with the packed service into its own folder, as npm would install it but without a registry.
 * Only the dependencies of the two packages are linked, to the modules of this project.
 */
export class PackedExample {
  readonly folder = mkdtempSync(join(tmpdir(), 'packed-'));
  private readonly modules = join(this.folder, 'node_modules');
  /** Every file of the tarball. */
  files: string[] = [];

  static async install(): Promise<PackedExample> {
    const example = new PackedExample();
    for (const part of ['package.json', 'tsconfig.json', 'tsconfig.build.json', 'registry.yaml', 'src', 'test']) {
      cpSync(join(EXAMPLE, part), join(example.folder, part), { recursive: true });
    }
    await example.unpackService();
    const { [serviceManifest.name]: _packed, ...others } = {
      ...serviceManifest.dependencies,
      ...exampleManifest.dependencies,
      ...exampleManifest.devDependencies,
    };
    for (const name of Object.keys(others)) example.link(name);
    return example;
  }

  /** Runs a script with Node in the folder of the example. */
  run(...parameters: string[]): Promise<ProcessResult> {
    return run(process.execPath, parameters, this.folder);
  }

  /** The path of one of the two programs of the built example. */
  built(file: 'main.js' | 'cli.js'): `/${string}` {
    return `/${join(this.folder, 'dist', file).slice(1)}`;
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

function run(program: string, parameters: string[], cwd: string): Promise<ProcessResult> {
  const env = { PATH: process.env.PATH, HOME: process.env.HOME };
  return new Promise((resolve) => {
    const child = execFile(program, parameters, { cwd, env, maxBuffer: 1 << 24 }, (_error, stdout, stderr) =>
      resolve({ exitCode: child.exitCode ?? -1, output: stdout + stderr }),
    );
  });
}
