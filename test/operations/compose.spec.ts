import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { loadConfiguration } from '../../src/platform/configuration/load-configuration.js';
import { read } from '../support/project-files.js';

interface ComposeService {
  image?: string;
  build?: object;
  profiles?: string[];
  volumes?: string[];
  depends_on?: Record<string, { condition: string }>;
  ports: string[];
  environment?: Record<string, string>;
  command: string[];
  healthcheck: { test: string[] };
}

const { services } = parse(read('compose.yaml'), { merge: true }) as {
  services: Record<string, ComposeService>;
};
const ofImage = Object.entries(services).filter(([, { image }]) => image !== undefined);
const built = Object.entries(services).filter(([, { build }]) => build !== undefined);

describe('compose.yaml', () => {
  it('starts the service itself only with the profile service, after its keys and its migrations', () => {
    expect(built.map(([name]) => name)).toEqual(['keys', 'migrate', 'service']);
    for (const [, { profiles, build }] of built)
      expect({ profiles, build }).toEqual({ profiles: ['service'], build: { context: '.' } });
    expect(services.migrate?.depends_on).toEqual({
      mysql: { condition: 'service_healthy' },
      keys: { condition: 'service_completed_successfully' },
    });
    expect(services.service?.depends_on).toMatchObject({ migrate: { condition: 'service_completed_successfully' } });
  });

  it('gives the service a configuration that it accepts, with the accounts of the databases', () => {
    const environment = services.service?.environment ?? {};
    const { DATABASE_URL, PORT } = loadConfiguration({ NODE_ENV: 'production', ...environment });
    const { hostname, username, password, pathname } = new URL(DATABASE_URL);
    expect(services[hostname]?.environment).toMatchObject({
      MYSQL_USER: username,
      MYSQL_PASSWORD: password,
      MYSQL_DATABASE: pathname.slice(1),
    });
    expect(services.service?.ports[0]).toBe(`127.0.0.1:${PORT}:${PORT}`);
  });

  it.each(ofImage)(
    'pins the version of %s, checks its health, and binds it to the loopback interface',
    (name, service) => {
      expect(service.image).toMatch(new RegExp(`^${name}:\\d+\\.\\d+\\.\\d+$`));
      expect(service.healthcheck.test.length).toBeGreaterThan(1);
      for (const port of service.ports) expect(port).toMatch(/^127\.0\.0\.1:\d+:\d+$/);
    },
  );

  it.each([
    ['mysql', 'docs/operations.md', /three MySQL (\d+\.\d+) servers/],
    ['mariadb', 'docs/performance.md', /Node [0-9.]+, MariaDB (\d+\.\d+)/],
  ])('has the version of %s that was tested according to %s', (name, page, pattern) => {
    const [, version] = pattern.exec(read(page)) ?? [];
    expect(services[name]?.image).toMatch(new RegExp(`^${name}:${version}\\.`));
  });

  it('has the URLs and passwords that CONTRIBUTING.md lists', () => {
    const urls = [...read('CONTRIBUTING.md').matchAll(/\b(?:mysql|mariadb):\/\/\S+/g)].map(([url]) => new URL(url));
    expect(urls.map(({ protocol }) => protocol).sort()).toEqual(['mariadb:', 'mariadb:']);
    for (const { protocol, port, username, password, pathname } of urls) {
      const { ports, environment = {} } = services[protocol.slice(0, -1)] as ComposeService;
      expect(ports).toEqual([expect.stringMatching(`^127\\.0\\.0\\.1:${port}:`)]);
      const accounts = {
        root: environment.MYSQL_ROOT_PASSWORD,
        [String(environment.MYSQL_USER)]: environment.MYSQL_PASSWORD,
      };
      expect(accounts).toHaveProperty(username, password);
      if (pathname !== '/') expect(pathname).toBe(`/${environment.MYSQL_DATABASE}`);
    }
  });
});
