import {
  AgentGuard,
  type AgentPrincipal,
  ApiRoute,
  BearerGuard,
  Caller,
  type CustomerDataParticipant,
  CustomerGuard,
  type CustomerPrincipal,
  CustomerService,
  defineExtension,
  type ExportedRows,
  OAuthError,
  PublicController,
  UUID,
  ValidatedBody,
} from '@customer-authorization/service/grant';
import { Delete, Get, HttpCode, Injectable, Param, Post } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { IsString, MaxLength } from 'class-validator';
import { Column, Entity, Index, PrimaryColumn, Repository } from 'typeorm';
import { type Columns, CreateTables } from '../../../../src/migrations/schema.js';
import type { Random } from '../../../../test/fuzz/random.js';
import type { RouteKit } from '../../src/kit.js';
import type { TestEnvironment } from '../../src/test-environment.js';
import type { TestedRoute } from './failures-of.js';
import { makes } from './mistake.js';

const NOTES = '/v2/customer/kit_notes';
const MAX_ROWS = 20;

@Entity('kit_note')
class Note {
  @PrimaryColumn('varchar', { length: 36 })
  id!: string;

  @Index('kit_note_owner')
  @Column('varchar', { length: 64 })
  owner!: string;

  @Column('varchar', { name: 'organization_id', length: 36 })
  organizationId!: string;

  @Column('varchar', { length: 100 })
  text!: string;

  @Column('int')
  reads!: number;
}

class Notes1795400000002 extends CreateTables {
  protected readonly tables = (its: Columns) => {
    const columns = [
      ...[its.key('id', 36), its.text('owner', 64), its.text('organization_id', 36), its.text('text', 100)],
      its.integer('reads'),
    ];
    return [{ name: 'kit_note', columns, indices: [{ name: 'kit_note_owner', columnNames: ['owner'] }] }];
  };
}

class NoteBody {
  @IsString()
  @MaxLength(100)
  text!: string;
}

class NoteResponse {
  @IsString()
  id!: string;
}

class NotesResponse {
  @IsString({ each: true })
  texts!: string[];
}

/** A later id is greater, so the list begins with the latest note. */
let newest = 0;
const newId = () => `${(++newest).toString(16).padStart(8, '0')}${crypto.randomUUID().slice(8)}`;

/** Who owns the notes of the routes. */
export interface NotesForm {
  caller: 'customer' | 'agent';
  isOfOrganization: boolean;
  hasContent: boolean;
  isList: boolean;
}

const NOTES_FORM: NotesForm = { caller: 'customer', isOfOrganization: false, hasContent: false, isList: true };
const SCOPE = 'notes:all';

type NotesRoutes = Record<'add' | 'list' | 'get' | 'delete' | 'ofCustomer', TestedRoute>;

/** Routes with a path parameter, a list and no content, for notes in a table of the team. */
export function notes(form = NOTES_FORM): NotesRoutes {
  const { caller, isOfOrganization, hasContent } = form;
  const ofAgents = AgentGuard(SCOPE) as unknown as typeof CustomerGuard;
  const ofCaller = caller === 'customer' ? CustomerGuard : ofAgents;
  const guard = makes('admits agents') ? (BearerGuard as unknown as typeof CustomerGuard) : ofCaller;
  const ownerOf = (principal: CustomerPrincipal | AgentPrincipal) =>
    principal.kind === 'customer' ? principal.entityId : principal.agentId;
  const seenBy = (principal: CustomerPrincipal | AgentPrincipal) => ({
    ...(!isOfOrganization &&
      !makes('shows notes of a colleague') &&
      !makes('shows notes of everyone') && { owner: ownerOf(principal) }),
    ...(!makes('shows notes of everyone') && { organizationId: principal.organizationId }),
  });

  @PublicController('v2/customer/kit_notes')
  class NotesController {
    constructor(
      @InjectRepository(Note) private readonly notes: Repository<Note>,
      private readonly customers: CustomerService,
    ) {}

    @Post()
    @HttpCode(200)
    @ApiRoute({ summary: 'Add a note', response: NoteResponse })
    async add(
      @Caller(guard) principal: CustomerPrincipal,
      @ValidatedBody(NoteBody) { text }: NoteBody,
    ): Promise<NoteResponse> {
      const id = newId();
      const { organizationId } = principal;
      await this.notes.insert({ id, owner: ownerOf(principal), organizationId, text, reads: 0 });
      return { id };
    }

    @Get()
    @ApiRoute({ summary: 'List notes', response: NotesResponse })
    async list(@Caller(guard) principal: CustomerPrincipal): Promise<NotesResponse> {
      const where = seenBy(principal);
      if (makes('writes in a GET')) await this.notes.increment(where, 'reads', 1);
      const take = makes('lists all rows') ? {} : { take: MAX_ROWS };
      const rows = await this.notes.find({ where, order: { id: 'DESC' }, ...take });
      return { texts: rows.map(({ text }) => text) };
    }

    @Get(':id')
    @ApiRoute({ summary: 'Get a note', response: NoteBody, errors: ['404 not_found'] })
    async get(@Caller(guard) principal: CustomerPrincipal, @Param('id') id: string): Promise<NoteBody> {
      if (makes('fails for an odd id') && id.includes('%')) throw new TypeError('no id');
      const note = UUID.test(id) ? await this.notes.findOneBy({ id, ...seenBy(principal) }) : null;
      if (!note) throw OAuthError.notFound();
      return { text: note.text };
    }

    @Delete(':id')
    @HttpCode(hasContent ? 200 : 204)
    @ApiRoute({ summary: 'Delete a note' })
    async delete(@Caller(guard) principal: CustomerPrincipal, @Param('id') id: string): Promise<object | undefined> {
      if (UUID.test(id))
        await this.notes.delete({ id, ...(makes('deletes notes of everyone') ? {} : seenBy(principal)) });
      return hasContent ? {} : undefined;
    }

    @Post('of/:customer')
    @HttpCode(204)
    @ApiRoute({ summary: 'Add a note about a customer', errors: ['404 not_found'] })
    async ofCustomer(
      @Caller(AgentGuard(makes('needs another scope') ? 'notes:all:other' : SCOPE)) { organizationId }: AgentPrincipal,
      @Param('customer') customer: string,
      @ValidatedBody(NoteBody) { text }: NoteBody,
    ): Promise<void> {
      const found = UUID.test(customer) && (await this.customers.find(customer, organizationId));
      if (!found && !makes('does not look up the customer')) throw OAuthError.notFound();
      await this.notes.insert({
        id: newId(),
        owner: customer.slice(0, 64),
        organizationId,
        text,
        reads: 0,
      });
    }
  }

  @Injectable()
  class NotesParticipant implements CustomerDataParticipant {
    constructor(@InjectRepository(Note) private readonly notes: Repository<Note>) {}

    onErase = async (owner: string): Promise<void> => {
      if (!makes('erases nothing')) await this.notes.delete({ owner });
    };

    exportRows = async (owner: string): Promise<ExportedRows> => ({
      kit_note: await this.notes.find({ where: { owner }, take: 1_001 }),
    });
  }

  const common = {
    ...defineExtension({
      controllers: [NotesController],
      entities: [Note],
      migrations: [Notes1795400000002],
      participants: [NotesParticipant],
    }),
    callers: [caller],
    actsOn: isOfOrganization ? 'own organization' : 'own caller',
    ...(caller === 'agent' && { agentScope: SCOPE }),
  } satisfies Partial<RouteKit>;
  let count = 0;
  const text = () => `note-${10_000 + count++}`;
  const bearerOf = async (environment: TestEnvironment): Promise<Record<string, string>> => {
    const token =
      caller === 'customer' ? (await environment.newCustomer()).accessToken : await environment.agentToken(SCOPE);
    return { authorization: `Bearer ${token}` };
  };
  const add = async (environment: TestEnvironment, headers: Record<string, string>) =>
    (await environment.service.post(NOTES, { text: text() }, headers)).body.id;
  const withNote = async (environment: TestEnvironment) => {
    const headers = await bearerOf(environment);
    return { headers, path: `${NOTES}/${await add(environment, headers)}` };
  };
  return {
    add: { ...common, route: `POST ${NOTES}`, valid: () => ({ body: { text: text() } }) },
    list: {
      ...common,
      route: `GET ${NOTES}`,
      valid: async (environment) => {
        const headers = await bearerOf(environment);
        await add(environment, headers);
        return { headers };
      },
      list: { add: ({ headers }, environment) => add(environment, headers ?? {}), most: MAX_ROWS },
    },
    get: { ...common, route: `GET ${NOTES}/{id}`, valid: withNote },
    delete: { ...common, route: `DELETE ${NOTES}/{id}`, valid: withNote },
    ofCustomer: {
      ...common,
      route: `POST ${NOTES}/of/{customer}`,
      callers: ['agent'],
      agentScope: SCOPE,
      actsOn: { customer: 'customer' },
      valid: async ({ newCustomer }) => ({
        path: `${NOTES}/of/${(await newCustomer()).entityId}`,
        body: { text: text() },
      }),
    },
  };
}

export function randomNotesForm(random: Random): NotesForm {
  return {
    caller: random.pick(['customer', 'agent']),
    isOfOrganization: random.chance(0.5),
    hasContent: random.chance(0.5),
    isList: true,
  };
}
