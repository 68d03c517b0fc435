# how: writes all products of heads as einsum
# exercise: modern.absorb
def absorb(q, q_place, latent, k_place, w_k, w_v):
    scores = torch.einsum("hr,mr->hm", torch.einsum("hd,hdr->hr", q, w_k), latent)
    scores = scores + torch.einsum("he,me->hm", q_place, k_place)
    mixed = torch.einsum("hm,mr->hr", scores.softmax(-1), latent)
    return torch.einsum("hr,hdr->hd", mixed, w_v)
