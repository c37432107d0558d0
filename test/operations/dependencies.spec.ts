import { describe, expect, it } from 'vitest';
import { read } from '../support/project-files.js';

interface LockedPackage {
  dev?: boolean;
  hasInstallScript?: boolean;
}

const { packages } = JSON.parse(read('package-lock.json')) as { packages: Record<string, LockedPackage> };
const production = Object.entries(packages).filter(([path, { dev }]) => path.startsWith('node_modules/') && !dev);

describe('the packages that an installation of the service brings', () => {
  it('run no script when they are installed', () => {
    expect(production.length).toBeGreaterThan(50);
    expect(production.filter(([, { hasInstallScript }]) => hasInstallScript).map(([path]) => path)).toEqual([]);
  });
});
