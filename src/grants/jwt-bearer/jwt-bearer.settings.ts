import { ArrayUnique, IsArray, IsBoolean, IsIn, IsInt, Max, Min } from 'class-validator';
import { JwtIssuer, Optional } from '../../public/grant.js';

const MAX_SIGN_IN_DAYS = 731;

/** The registry's settings for an organization's sign-in system, under the organization's `grants`. */
export class JwtBearerSettings extends JwtIssuer {
  /** Whether requests may use `link`, which gives or links a browser's customer to a user. If omitted, they may not. */
  @Optional()
  @IsBoolean()
  link_browsers?: boolean;

  /** For how many days after the last sign-in a browser leads to the customer of the user. If omitted, 30. */
  @Optional()
  @IsInt()
  @Min(1)
  @Max(MAX_SIGN_IN_DAYS)
  sign_in_days?: number;
}

/** The registry's settings for a client, under the client's `grants`. */
export class JwtBearerClientSettings {
  /** The values of `remember` that the client may send; if omitted, none. */
  @Optional()
  @IsArray()
  @ArrayUnique()
  @IsIn(['browser'], { each: true, message: 'each must be browser' })
  remember?: 'browser'[];
}
