import { describe, expect, it } from 'vitest';
import { useDatabase } from '../../support/databases.js';
import { environmentOf, runCli, startServiceProcess } from '../../support/processes.js';
import { read } from '../../support/project-files.js';
import { request } from '../../support/test-service.js';

const { version } = JSON.parse(read('package.json'));

describe('the version of package.json', () => {
  const database = useDatabase();

  it('is in the first line of the log, in both probes and in a metric', async () => {
    const { process, managementUrl, terminate } = await startServiceProcess(environmentOf(database));
    const [firstLine] = process.stdout.split('\n');
    expect(firstLine).toContain(`customer-authorization-service ${version}`);
    for (const status of ['live', 'ready'])
      expect((await request(`${managementUrl}/health/${status}`, {})).body).toEqual({ status, version });
    expect((await request(`${managementUrl}/metrics`, {})).text).toContain(`version="${version}"} 1`);
    expect(await terminate()).toBe(0);
  });

  it('is printed by --version, even if the environment is invalid', async () => {
    expect(await runCli(['--version'], { PORT: 'x' })).toMatchObject({ code: 0, stdout: `${version}\n`, stderr: '' });
  });

  it('is in a label of the image', () => {
    expect(read('Dockerfile')).toContain(`org.opencontainers.image.version="${version}"`);
  });
});
