"""The issuer of store grants, for tests only: the Store's own protocol is none of the lab's (GR-005).

Does: mint sealed grants for conversations that were registered with it, answer whether one was revoked, and mint wrong
and expired ones by a control of its own. Does not: create conversations, or know the partner API. Never: keeps a key
in clear, writes down a grant, or opens one for anybody but the store.
"""
