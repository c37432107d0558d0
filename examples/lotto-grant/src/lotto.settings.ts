import { IsString, Matches } from 'class-validator';

/** What the registry may say about a client under `grants: { lotto: … }`. */
export class LottoSettings {
  /** Tickets that end so win. */
  @Matches(/^\d{1,5}$/, { message: 'must be one to five digits' })
  winning_ending: string;

  @IsString()
  prize: string;
}
