import { IsString, Matches } from 'class-validator';
import { GrantBody } from '../../../src/public/grant.js';

/** The parameters of the lotto grant. The service ignores all parameters that are not declared here. */
export class LottoBody extends GrantBody {
  @IsString()
  override organization_id!: string;

  @Matches(/^\d{6}$/, { message: 'must be six digits' })
  ticket!: string;
}
