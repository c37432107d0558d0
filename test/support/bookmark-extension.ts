import { Delete, Get, HttpCode, Injectable, Param, Post } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { IsString, Matches, MaxLength } from 'class-validator';
import { Column, Entity, Index, type MigrationInterface, PrimaryColumn, type QueryRunner, Repository } from 'typeorm';
import {
  ApiRoute,
  Caller,
  Columns,
  type CustomerDataParticipant,
  CustomerGuard,
  type CustomerPrincipal,
  createTables,
  defineExtension,
  dropTables,
  type ExportedRows,
  Nested,
  OAuthError,
  Optional,
  PublicController,
  UUID,
  ValidatedBody,
  ValidatedQuery,
} from '../../src/public/grant.js';

/** The most bookmarks of a page of the list. */
const MAX_PAGE_ROWS = 100;
/** The bound of an export, and one more. */
const MAX_EXPORTED_ROWS = 1_001;

@Entity('bookmark')
export class Bookmark {
  @PrimaryColumn('varchar', { length: 36 })
  id!: string;

  @Index('bookmark_entity_id')
  @Column('varchar', { name: 'entity_id', length: 36 })
  entityId!: string;

  @Column('varchar', { length: 200 })
  title!: string;
}

class Bookmarks1795600000000 implements MigrationInterface {
  readonly name = 'Bookmarks1795600000000';

  async up(runner: QueryRunner): Promise<void> {
    const columns = new Columns(runner);
    const ofBookmark = [columns.key('id', 36), columns.text('entity_id', 36), columns.text('title', 200)];
    const indices = [{ name: 'bookmark_entity_id', columnNames: ['entity_id'] }];
    await createTables(runner, [{ name: 'bookmark', columns: ofBookmark, indices }]);
  }

  async down(runner: QueryRunner): Promise<void> {
    await dropTables(runner, ['bookmark']);
  }
}

class NewBookmark {
  @IsString()
  @MaxLength(200)
  title!: string;
}

class BookmarkResponse {
  @IsString()
  id!: string;

  @IsString()
  title!: string;
}

class ListQuery {
  /** The last id of the page before. */
  @Optional()
  @Matches(UUID)
  after?: string;
}

class ListResponse {
  @Nested(() => BookmarkResponse, { each: true })
  bookmarks!: BookmarkResponse[];
}

/** The bookmarks of a customer. Each statement names the customer, so no customer reaches a bookmark of another one. */
@PublicController('v2/customer/bookmarks')
class BookmarkController {
  constructor(@InjectRepository(Bookmark) private readonly bookmarks: Repository<Bookmark>) {}

  @Post()
  @HttpCode(200)
  @ApiRoute({ summary: 'Add a bookmark', response: BookmarkResponse })
  async add(
    @Caller(CustomerGuard) { entityId }: CustomerPrincipal,
    @ValidatedBody(NewBookmark) { title }: NewBookmark,
  ): Promise<BookmarkResponse> {
    const id = crypto.randomUUID();
    await this.bookmarks.insert({ id, entityId, title });
    return { id, title };
  }

  @Get()
  @ApiRoute({ summary: 'List the bookmarks, in pages of 100', response: ListResponse })
  async list(
    @Caller(CustomerGuard) { entityId }: CustomerPrincipal,
    @ValidatedQuery(ListQuery) { after = '' }: ListQuery,
  ): Promise<ListResponse> {
    const { bookmarks } = this;
    const builder = bookmarks.createQueryBuilder('bookmark').where({ entityId }).andWhere('id > :after', { after });
    const rows = await builder.orderBy('id').limit(MAX_PAGE_ROWS).getMany();
    return { bookmarks: rows.map(({ id, title }) => ({ id, title })) };
  }

  @Delete(':id')
  @HttpCode(204)
  @ApiRoute({ summary: 'Delete a bookmark', pathParameters: { id: { description: 'The id of the bookmark.' } } })
  async delete(@Caller(CustomerGuard) { entityId }: CustomerPrincipal, @Param('id') id: string): Promise<void> {
    if (!UUID.test(id)) throw OAuthError.invalidRequest('id: must be the id of a bookmark');
    await this.bookmarks.delete({ id, entityId });
  }
}

/** Erases and exports the bookmarks of a customer. */
@Injectable()
class BookmarkParticipant implements CustomerDataParticipant {
  constructor(@InjectRepository(Bookmark) private readonly bookmarks: Repository<Bookmark>) {}

  async onErase(entityId: string): Promise<void> {
    await this.bookmarks.delete({ entityId });
  }

  async exportRows(entityId: string): Promise<ExportedRows> {
    return { bookmark: await this.bookmarks.find({ where: { entityId }, take: MAX_EXPORTED_ROWS }) };
  }
}

export const bookmarkExtension = defineExtension({
  controllers: [BookmarkController],
  entities: [Bookmark],
  migrations: [Bookmarks1795600000000],
  participants: [BookmarkParticipant],
});
