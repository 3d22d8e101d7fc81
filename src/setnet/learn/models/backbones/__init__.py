"""Backbones: ResNet-50 and SENet-50 as in VGGFace2, SFace, a small MobileFaceNet and a small CNN."""
