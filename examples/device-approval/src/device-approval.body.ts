import { GrantBody } from '@customer-authorization/service/grant';
import { IsIn, IsString, Matches } from 'class-validator';
import { USER_CODE } from './user-code.js';

/** The parameters by which a new device asks for its codes. */
export class StartBody {
  @IsString()
  client_id!: string;

  @IsString()
  organization_id!: string;
}

/** The decision of a signed-in customer about a new device. */
export class DecisionBody {
  /** The code that the new device shows. */
  @Matches(USER_CODE, { message: 'must be the code that the new device shows' })
  user_code!: string;

  @IsIn(['approve', 'deny'], { message: 'must be approve or deny' })
  decision!: 'approve' | 'deny';
}

/** The parameters of the grant, by which the new device polls. */
export class PollBody extends GrantBody {
  @Matches(/^[\w-]{43}$/, { message: 'must be the device_code of the start' })
  device_code!: string;
}
