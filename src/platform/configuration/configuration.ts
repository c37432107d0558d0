import { Transform } from 'class-transformer';
import { IsArray, IsIn, IsOptional, IsString, Matches, ValidateNested } from 'class-validator';
import { IsHost, IsHttpOrigin, IsOtlpEndpoint } from '../validation/url-rules.js';
import {
  BooleanVariable,
  IntegerVariable,
  IsTrustProxy,
  PortVariable,
  ShareVariable,
} from '../validation/variable-rules.js';
import { IsAdminTokens } from './admin-tokens.js';
import { IsDatabaseUrl } from './database-url.js';
import { type AdminIssuer, parseAdminIssuer, parseTrustedIssuers, type TrustedIssuer } from './issuers.js';
import { DEFAULT_LIMITS, IsRateLimit, parseRateLimit, type RateLimitRules } from './rate-limit-rule.js';

const DAY_SECONDS = 86_400;
/** No access token lives longer; variables and the registry can only set less (protocol §3.15). */
export const MAX_ACCESS_TOKEN_TTL_SECONDS = DAY_SECONDS;
const YEAR_SECONDS = 365 * DAY_SECONDS;
export const MAX_REFRESH_TOKEN_TTL_SECONDS = YEAR_SECONDS;

/**
 * The environment variables that an operator can set (protocol §9.4). Each variable may also be set as `NAME_FILE`, the
 * path of a file that contains the value. A required field without a default here gets one in load-configuration.ts.
 */
export class Configuration {
  /** `production` forbids an AUTH_URL without TLS. `test` is the same as `development`. */
  @IsIn(['production', 'development', 'test'])
  NODE_ENV = 'development';

  /** `sqlite:PATH`, `mysql://user:password@host:port/database` or `mariadb://…`; TLS: protocol §9.5. */
  @IsDatabaseUrl()
  DATABASE_URL!: string;

  /** Connections to the database per process. The minimum is 2, because a transaction occupies one. */
  @IntegerVariable(2, 1_000)
  DB_POOL_SIZE = 10;

  /** The folder for the embedded database and for the files that a first run generates. */
  @IsString()
  DATA_DIR = './var';

  /** The file whose default export is the extension of another team, of `defineExtension`. The start loads it first. */
  @IsOptional()
  @IsString()
  EXTENSION?: string;

  /** The IP address or host name to bind. By default, all addresses of the machine, including IPv6. */
  @IsOptional()
  @IsHost()
  HOST?: string;

  @PortVariable()
  PORT = 3000;

  @PortVariable()
  MANAGEMENT_PORT = 3001;

  /** A separate port for `/admin`, which MANAGEMENT_PORT then does not serve (protocol §1.5). */
  @IsOptional()
  @PortVariable()
  ADMIN_PORT?: number;

  /** How long an idle connection stays open: longer than the proxy in front of the service keeps it. */
  @IntegerVariable(1, 7_200)
  KEEP_ALIVE_SECONDS = 65;

  /**
   * After so many seconds without a successful statement, the liveness probe fails, so that Kubernetes restarts the
   * process. Without it, the probe does not depend on the database.
   */
  @IsOptional()
  @IntegerVariable(60, 86_400)
  LIVENESS_OUTAGE_SECONDS?: number;

  /** The origin that callers use. It is the issuer of the tokens and the default domain of the cookies. */
  @IsHttpOrigin()
  AUTH_URL!: string;

  /** A YAML file of the registry. A start that may run migrations applies it (protocol §8.1). */
  @IsOptional()
  @IsString()
  REGISTRY_FILE?: string;

  /** Whether the start runs pending migrations. The default is `true` for SQLite only. */
  @BooleanVariable()
  MIGRATE_ON_START!: boolean;

  /** The prefix of every token, before the first `:`. */
  @Matches(/^[A-Za-z0-9-]{1,16}$/, { message: 'must be 1 to 16 letters, digits or hyphens' })
  TOKEN_REGION = 'dev';

  /** A file with a private JWK Set. Optional with SQLite only, where the first start generates the keys. */
  @IsOptional()
  @IsString()
  SIGNING_KEYS_FILE?: string;

  /** Seconds for which a customer token is valid (protocol §3.15). */
  @IntegerVariable(1, MAX_ACCESS_TOKEN_TTL_SECONDS)
  CUSTOMER_TOKEN_TTL = 28_800;

  @IntegerVariable(1, MAX_ACCESS_TOKEN_TTL_SECONDS)
  AGENT_TOKEN_TTL = 28_800;

  /** Seconds for which a transfer token is valid (protocol §3.15). */
  @IntegerVariable(1, DAY_SECONDS)
  TRANSFER_TOKEN_TTL = 3_600;

  /** Seconds for which an unused refresh token is valid. */
  @IntegerVariable(1, MAX_REFRESH_TOKEN_TTL_SECONDS)
  REFRESH_TOKEN_TTL = 2_592_000;

  @IntegerVariable(1, 600)
  AUTHORIZATION_CODE_TTL = 300;

  /** For how many days services can read an event of a customer (protocol §7.8). */
  @IntegerVariable(1, 31)
  EVENT_DAYS = 7;

  /**
   * Bearer tokens of the operators as `name:role:token`, separated by commas or line breaks. The audit has the name.
   * Without a token and `ADMIN_ISSUER`, `/admin` does not exist.
   */
  @IsOptional()
  @IsAdminTokens()
  ADMIN_TOKENS?: string;

  /** The authorization server of the operators. Its tokens with a role are admin tokens too (protocol §9.1). */
  @IsOptional()
  @Transform(({ value }) => parseAdminIssuer(value))
  @ValidateNested({ message: 'must be a JSON object' })
  ADMIN_ISSUER?: AdminIssuer;

  /** Other authorization servers whose agent tokens the service accepts (protocol §6.10). */
  @IsOptional()
  @Transform(({ value }) => parseTrustedIssuers(value))
  @ValidateNested({ each: true })
  @IsArray({ message: 'must be a JSON array of objects' })
  TRUSTED_AGENT_ISSUERS: TrustedIssuer[] = [];

  /** The folder of the key sets that `jwks_file` in the registry names (protocol §8.3). */
  @IsOptional()
  @IsString()
  JWKS_DIR?: string;

  /** Hours between the request to off-board an organization and its erasure, in which it can be cancelled. */
  @IntegerVariable(0, 720)
  OFFBOARDING_DELAY_HOURS = 24;

  /** The proxies whose `X-Forwarded-For` is trusted: their number, or their IP addresses separated by commas. */
  @IsOptional()
  @IsTrustProxy()
  TRUST_PROXY?: string;

  /** The limits of new customers, token requests, transfers, revocations and `forget` (protocol §2.14), or `off`. */
  @Transform(({ value }) => parseRateLimit(value))
  @IsRateLimit()
  RATE_LIMIT: RateLimitRules | 'off' = DEFAULT_LIMITS;

  /** The prefix of `cid` and `cst` in the names of the identity cookies. */
  @Matches(/^(?!__host-|__hosthttp-)[a-z0-9_-]{1,32}$/i, {
    message: 'must be 1 to 32 letters, digits, hyphens or underscores, and must not begin with __Host-',
  })
  COOKIE_PREFIX = '__svc_';

  /** `Domain` of the identity cookies, by default the host of AUTH_URL. `host-only` omits the attribute. */
  @IsString()
  COOKIE_DOMAIN!: string;

  /** Adds `Partitioned` (CHIPS): browsers that block third-party cookies drop identity cookies without it. */
  @BooleanVariable()
  COOKIE_PARTITIONED = true;

  /** Whether the public port serves the routes below /try (protocol §11). `npm start` sets `true`. */
  @BooleanVariable()
  TRY_IT = false;

  /** Minimum log level. Audit events are written at every level. */
  @IsIn(['fatal', 'error', 'warn', 'info', 'debug', 'trace'])
  LOG_LEVEL: 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' = 'info';

  /** The log has one of so many audit events `token.issued` of customers; 0 is none. Metrics count each. */
  @IntegerVariable(0, 1_000_000)
  AUDIT_TOKEN_ISSUED_ONE_OF = 1;

  /** The receiver of traces, by OTLP over HTTP. Without it, the service does not trace. */
  @IsOptional()
  @IsOtlpEndpoint()
  OTEL_EXPORTER_OTLP_ENDPOINT?: string;

  /**
   * The share of the requests without a `traceparent` that are traced. The flag of a `traceparent` decides otherwise.
   */
  @ShareVariable()
  OTEL_TRACES_SAMPLER_ARG = 1;

  /** The variables that this process does not use. They were not read. @internal */
  unused: string[] = [];

  /** What the operator may not have meant, although it is no violation: for the log. @internal */
  warnings: string[] = [];

  /** The files of the variables that were given as `NAME_FILE`, by the name of the variable. @internal */
  files: Record<string, string> = {};

  /** Whether an operator has a bearer token, or may get one by a file or an issuer. */
  get hasAdminTokens(): boolean {
    return [this.ADMIN_TOKENS, this.files.ADMIN_TOKENS, this.ADMIN_ISSUER].some((source) => source !== undefined);
  }

  /** Whether the database is the embedded SQLite, which is for one process. */
  get embedded(): boolean {
    return this.DATABASE_URL.startsWith('sqlite:');
  }
}
