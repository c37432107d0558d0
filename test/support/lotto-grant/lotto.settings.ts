import { IsString, Matches } from 'class-validator';

/** What the registry may say about a client under `grants: { lotto: … }`. */
export class LottoSettings {
  @Matches(/^\d{6}$/, { message: 'must be six digits' })
  winning_ticket: string;

  @IsString()
  prize: string;
}
