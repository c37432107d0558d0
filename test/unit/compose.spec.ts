import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';

interface ComposeService {
  image: string;
  ports: string[];
  environment?: Record<string, string>;
  command: string[];
  healthcheck: { test: string[] };
}

const PROJECT = join(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(PROJECT, path), 'utf8');
const { services } = parse(read('compose.yaml'), { merge: true }) as { services: Record<string, ComposeService> };

describe('compose.yaml', () => {
  it('offers MySQL, MariaDB and Redis', () => {
    expect(Object.keys(services)).toEqual(['mysql', 'mariadb', 'redis']);
  });

  it.each(Object.entries(services))(
    'pins the version of %s, checks its health, and binds it to the loopback interface',
    (name, service) => {
      expect(service.image).toMatch(new RegExp(`^${name}:\\d+\\.\\d+\\.\\d+$`));
      expect(service.healthcheck.test.length).toBeGreaterThan(1);
      for (const port of service.ports) expect(port).toMatch(/^127\.0\.0\.1:\d+:\d+$/);
    },
  );

  it.each([
    ['mysql', 'docs/operations.md', /Measured on three members of MySQL (\d+\.\d+)/],
    ['mariadb', 'docs/performance.md', /a private durable MariaDB (\d+\.\d+)/],
  ])('has the version of %s that was tested according to %s', (name, page, pattern) => {
    const [, version] = pattern.exec(read(page)) ?? [];
    expect(services[name]?.image).toMatch(new RegExp(`^${name}:${version}\\.`));
  });

  it('has the URLs and passwords that CONTRIBUTING.md lists', () => {
    const urls = [...read('CONTRIBUTING.md').matchAll(/\b(?:mysql|mariadb|redis):\/\/\S+/g)].map(
      ([url]) => new URL(url),
    );
    expect(urls.map(({ protocol }) => protocol).sort()).toEqual(['mariadb:', 'mariadb:', 'redis:']);
    for (const { protocol, port, username, password, pathname } of urls) {
      const { ports, environment = {}, command } = services[protocol.slice(0, -1)] as ComposeService;
      expect(ports).toEqual([expect.stringMatching(`^127\\.0\\.0\\.1:${port}:`)]);
      if (protocol === 'redis:') {
        expect(command).toContain(password);
        continue;
      }
      const accounts = {
        root: environment.MYSQL_ROOT_PASSWORD,
        [String(environment.MYSQL_USER)]: environment.MYSQL_PASSWORD,
      };
      expect(accounts).toHaveProperty(username, password);
      if (pathname !== '/') expect(pathname).toBe(`/${environment.MYSQL_DATABASE}`);
    }
  });
});
