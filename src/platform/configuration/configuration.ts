import { Transform } from 'class-transformer';
import { IsArray, IsIn, IsOptional, IsString, Matches, ValidateNested } from 'class-validator';
import { IsDatabaseUrl } from './database-url.js';
import { DEFAULT_LIMITS, IsRateLimit, parseRateLimit, type RateLimitRules } from './rate-limit-rule.js';
import { parseTrustedIssuers, type TrustedIssuer } from './trusted-issuer.js';
import { Flag, IsHttpOrigin, IsHttpUrl, IsRedisUrl, IsTrustProxy, Whole } from './variable-rules.js';

const DAY_SECONDS = 86_400;
const YEAR_SECONDS = 365 * DAY_SECONDS;

/**
 * Everything an operator can set, under the names of the environment (protocol §9.4). Each may also be given as
 * `NAME_FILE`, the path of a file that holds the value. A field without a value here gets its default from the others,
 * in load-configuration.ts.
 */
export class Configuration {
  /** `production` forbids what only a first run may do: a demo registry, an AUTH_URL without TLS. */
  @IsString()
  NODE_ENV = 'development';

  /** `sqlite:PATH`, `mysql://user:password@host:port/database` or `mariadb://…`; with `?ssl=true` or `?ssl_ca=PATH`, TLS is required. */
  @IsDatabaseUrl()
  DATABASE_URL: string;

  /** Connections to the database that one process may hold; one more than a transaction needs for itself. */
  @Whole(2, 1_000)
  DB_POOL_SIZE = 10;

  /** The folder of the embedded database and what a first run generates. */
  @IsString()
  DATA_DIR = './var';

  /** The address to bind; every address of the machine, IPv6 too, when left out. */
  @IsOptional()
  @IsString()
  HOST?: string;

  @Whole(0, 65_535)
  PORT = 3000;

  @Whole(0, 65_535)
  MANAGEMENT_PORT = 3001;

  /** The base address callers use; issuer of the tokens, host of the cookies. No slash at its end. */
  @IsHttpOrigin()
  AUTH_URL: string;

  /** A YAML file of organizations, clients and agents, applied at every start. */
  @IsOptional()
  @IsString()
  REGISTRY_FILE?: string;

  /** Whether a start brings the schema up to date; `true` by default only for SQLite. */
  @Flag()
  MIGRATE_ON_START: boolean;

  /** What stands before the `:` of every token. */
  @Matches(/^[A-Za-z0-9-]{1,16}$/, { message: 'must be 1 to 16 letters, digits or hyphens' })
  TOKEN_REGION = 'dev';

  /** A private JWK Set. Required unless the database is SQLite, which lets the first start generate one. */
  @IsOptional()
  @IsString()
  SIGNING_KEYS_FILE?: string;

  /** Seconds a customer access token is valid (protocol §3.15). */
  @Whole(1, DAY_SECONDS)
  CUSTOMER_TOKEN_TTL = 28_800;

  /** Seconds an agent access token is valid. */
  @Whole(1, DAY_SECONDS)
  AGENT_TOKEN_TTL = 28_800;

  /** Seconds an identity transfer token is valid (protocol §3.15). */
  @Whole(1, DAY_SECONDS)
  TRANSFER_TOKEN_TTL = 3_600;

  /** Seconds a refresh token is valid when it is not used. */
  @Whole(1, YEAR_SECONDS)
  REFRESH_TOKEN_TTL = 2_592_000;

  /** Seconds an authorization code is valid. */
  @Whole(1, 600)
  AUTHORIZATION_CODE_TTL = 300;

  /** Secrets that sign the sessions of agents, separated by commas: the first signs. Derived from the signing keys when left out. */
  @IsOptional()
  @Matches(/^[^,\s]{32,}(,[^,\s]{32,})*$/, {
    message: 'must be one or more secrets of at least 32 characters, separated by commas',
  })
  SESSION_SECRET?: string;

  /** Bearers of the operator, separated by commas, so that one can replace another; without it `/admin` does not exist. */
  @IsOptional()
  @Matches(/^[^,\s]{16,}(,[^,\s]{16,})*$/, {
    message: 'must be one or more tokens of at least 16 characters, separated by commas',
  })
  ADMIN_TOKEN?: string;

  /** Authorization servers whose agent tokens are accepted beside our own (protocol §6.10). */
  @IsOptional()
  @Transform(({ value }) => parseTrustedIssuers(value))
  @ValidateNested({ each: true })
  @IsArray({ message: 'must be a JSON array of objects' })
  TRUSTED_AGENT_ISSUERS: TrustedIssuer[] = [];

  /** Whose `X-Forwarded-For` counts: the number of proxies before the service, or their addresses, separated by commas. */
  @IsOptional()
  @IsTrustProxy()
  TRUST_PROXY?: string;

  /** `off`, or how many new identities a network, token requests a client, transfers a customer and sign-ins an account may have. */
  @Transform(({ value }) => parseRateLimit(value))
  @IsRateLimit()
  RATE_LIMIT: RateLimitRules | 'off' = DEFAULT_LIMITS;

  /** Redis, by which all processes share the limits; each counts alone when left out. */
  @IsOptional()
  @IsRedisUrl()
  REDIS_URL?: string;

  /** What stands before `cid` and `cst` in the names of the identity cookies. */
  @Matches(/^[A-Za-z0-9_-]{1,32}$/, { message: 'must be 1 to 32 letters, digits, hyphens or underscores' })
  COOKIE_PREFIX = '__svc_';

  /** `Domain` of the identity cookies: a host name, by default AUTH_URL's; `host-only` leaves the attribute out. */
  @Matches(/^[A-Za-z0-9.:[\]-]{1,253}$/, { message: 'must be a host name, or host-only' })
  COOKIE_DOMAIN: string;

  /** Adds `Partitioned` (CHIPS) to the identity cookies, which browsers that block third-party cookies drop without it. */
  @Flag()
  COOKIE_PARTITIONED = true;

  /** The least grave lines that are written; audit events are written at every level. */
  @IsIn(['fatal', 'error', 'warn', 'info', 'debug', 'trace'])
  LOG_LEVEL: 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' = 'info';

  /** Where traces go, by OTLP over HTTP; without it nothing is traced. */
  @IsOptional()
  @IsHttpUrl()
  OTEL_EXPORTER_OTLP_ENDPOINT?: string;

  /** Whether the embedded SQLite is the database: the mode of a first run, of one process alone. */
  get embedded(): boolean {
    return this.DATABASE_URL.startsWith('sqlite:');
  }
}
