"""Backbones: ResNet-50 and SENet-50 as in VGGFace2, and a small MobileFaceNet."""
